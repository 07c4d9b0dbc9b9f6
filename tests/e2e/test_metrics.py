"""What is shipped for monitoring, with a real Prometheus that scrapes real engines.

What vLLM answers is recorded in `data/vllm-metrics-*.txt`, before and after some requests.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from moorage.inventory.claims import Resource
from tests.builders import REVISION, a_claim, a_fleet, a_host, a_spec
from tests.e2e.conftest import process_engine
from tests.e2e.test_gateway import Gateway, streaming_engine
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.prefect_server import free_port
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.server]

MONITORING = REPOSITORY / "deployments" / "monitoring"
DASHBOARDS = sorted(MONITORING.glob("grafana/*.json"))
RECORDED = Path(__file__).parent / "data"
FIRING = RECORDED / "alerts-fire.yml"
LABEL = re.compile(r"{{(\w+)}}")
"""A label in the legend of a panel."""

COMPARISON = re.compile(r" (==|>|<) [\d.]+$")
VARIABLES = {"$model": ".*", "$__rate_interval": "1m"}
"""What Grafana puts into queries."""

PATIENCE_SECONDS = 60.0

SMALL = {"ram": "64MiB"}


@pytest.fixture
def gateway(workplace: Workplace) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield Gateway(workplace)
    workplace.run("gateway", "down")


@pytest.fixture
def exporter(workplace: Workplace) -> Iterator[str]:
    """The address of `moorage metrics serve`."""
    address = f"127.0.0.1:{free_port()}"
    serving = workplace.start("metrics", "serve", "--port", address.rpartition(":")[2])
    until(lambda: _answers(f"http://{address}/targets"), unless=serving.poll)
    yield address
    serving.send_signal(signal.SIGTERM)
    serving.wait()


@pytest.fixture
def prometheus(tmp_path: Path, exporter: str) -> Iterator[Prometheus]:
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed: apt-get install prometheus")
    server = Prometheus(tmp_path / "prometheus", exporter)
    yield server
    server.close()


class Prometheus:
    """Debian's Prometheus on the shipped configuration, but for addresses and intervals."""

    def __init__(self, folder: Path, exporter: str) -> None:
        shutil.copytree(MONITORING, folder)
        config = folder / "prometheus.yml"
        text = config.read_text().replace("127.0.0.1:9464", exporter)
        config.write_text(text.replace("15s", "1s"))
        address = f"127.0.0.1:{free_port()}"
        self._http = httpx.Client(base_url=f"http://{address}")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
                "--log.level=error",
            ]
        )
        until(lambda: _answers(f"http://{address}/-/ready"), unless=self._process.poll)

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series of a query with their values."""
        answer = self._http.get("/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", (query, answer)
        return list(answer["data"]["result"])

    def numbers(self, query: str) -> list[float]:
        """The values of a query, but for those that are none, such as 0 / 0."""
        values = (float(one["value"][1]) for one in self.ask(query))
        return [value for value in values if not math.isnan(value)]

    def rules(self) -> list[dict[str, Any]]:
        """The rules that it has loaded, each with its health."""
        groups = self._http.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._http.close()


def test_every_panel_and_every_alert_has_data_of_real_engines(
    workplace: Workplace,
    gateway: Gateway,
    tiny_gguf: Path,
    lifecycle_program: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    program, _ = streaming_engine(tmp_path)
    recorded = tmp_path / "metrics"
    shutil.copy(RECORDED / "vllm-metrics-before.txt", recorded)
    vllm = process_engine(program, METRICS=str(recorded))
    workplace.run("deploy", workplace.spec("vllm", engine=vllm, placement=SMALL))
    llama = {"name": "llama.cpp", "runtime": "process"}
    workplace.run("deploy", workplace.spec(source=f"file://{tiny_gguf}", engine=llama))
    dying = process_engine(lifecycle_program, "die")
    workplace.run("deploy", workplace.spec("dying", engine=dying, placement=SMALL), code=None)
    workplace.run("reconcile")
    claim_accelerator(workplace)

    prometheus: Prometheus = request.getfixturevalue("prometheus")
    until(lambda: len(prometheus.ask("up == 1")) == 4)
    shutil.copy(RECORDED / "vllm-metrics-after.txt", recorded)
    assert gateway.ask("tiny").status_code == 200
    empty = waiting = {**panels(), **alerts()}
    give_up = time.monotonic() + PATIENCE_SECONDS
    while empty and time.monotonic() < give_up:
        time.sleep(1)
        empty = {name: query for name, query in empty.items() if not prometheus.numbers(query)}
    assert not empty, f"{len(empty)} of {len(waiting)} have no data"
    assert {rule["health"] for rule in prometheus.rules()} == {"ok"}
    assert not nameless(prometheus)
    assert_labels(prometheus, workplace)


def nameless(prometheus: Prometheus) -> list[str]:
    """The labels of legends that no series of their query has, by panel."""
    return [
        f"{name}: {label}"
        for name, target in targets().items()
        for label in LABEL.findall(target["legendFormat"])
        if not any(label in one["metric"] for one in prometheus.ask(as_asked(target["expr"])))
    ]


def claim_accelerator(place: Workplace) -> None:
    """Claim one, as a deploy on a host with accelerators does: this machine may have none."""
    release = place.ledger.releases.begin(a_spec(name=place.named("large")), REVISION, "")
    fleet = a_fleet(a_host("gpu-1", address="ssh://gpu-1"))
    place.ledger.claims.commit(release, [a_claim(Resource.ACCELERATOR)], fleet)


def assert_labels(prometheus: Prometheus, place: Workplace) -> None:
    """Series of engines carry the names of the ledger; what failed is counted by its cause."""
    (one,) = prometheus.ask("llamacpp:requests_processing")
    labels = {"model": place.named("tiny"), "release": f"{place.named('tiny')}.v1"}
    labels |= {"host": "local", "replica": "0", "engine": "llama.cpp"}
    assert labels.items() <= one["metric"].items()
    (dead,) = place.releases("dying")
    assert dead.release
    assert dead.release.failure
    failed = f'moorage_model_events_total{{model="{dead.model}", event="failed"}}'
    assert prometheus.numbers(failed) == [1]
    cause = dead.release.failure.cause
    assert prometheus.numbers(f'moorage_failures_total{{cause="{cause}"}}') == [1]
    assert prometheus.numbers("moorage_reconcile_runs_total") == [1]
    assert prometheus.numbers(f'moorage_tokens_total{{model="{place.named("tiny")}"}} > 0')


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_grafana_knows_every_field_of_a_dashboard(file: Path) -> None:
    """Its own models of a dashboard drop what they do not know, such as a misspelt field."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415  (0.1 s)
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # noqa: PLC0415
    from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: PLC0415

    register_default_plugins()
    written = json.loads(file.read_text())
    read = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
    assert within(written, read)
    misspelt = {**written, "panels": [{**written["panels"][0], "titel": "x"}]}
    read = json.loads(json.dumps(Dashboard.from_json(misspelt), cls=JSONEncoder))
    assert not within(misspelt, read)


def within(part: Any, whole: Any) -> bool:
    """Whether everything that was written was read; readers add defaults."""
    if isinstance(part, dict):
        return all(key in whole and within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(within, part, whole))
    return bool(part == whole)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", MONITORING / "prometheus.yml"),
        ("check", "rules", MONITORING / "alerts.yml"),
        ("test", "rules", FIRING),
    ],
    ids=["configuration", "alerts", "alerts that fire"],
)
def test_promtool_takes_what_is_shipped(words: tuple[str, str, Path]) -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    (cases,) = YAML(typ="safe").load(FIRING)["tests"]
    fire = {case["alertname"] for case in cases["alert_rule_test"] if case.get("exp_alerts")}
    assert fire == alerts().keys()


def panels() -> dict[str, str]:
    """The queries of all panels by dashboard, panel and letter, as Grafana asks them."""
    return {name: as_asked(target["expr"]) for name, target in targets().items()}


def targets() -> dict[str, dict[str, Any]]:
    """The targets of all panels by dashboard, panel and letter."""
    return {
        f"{file.stem}: {panel['title']} {target['refId']}": target
        for file in DASHBOARDS
        for panel in json.loads(file.read_text())["panels"]
        for target in panel["targets"]
    }


def as_asked(query: str) -> str:
    """A query as Grafana asks it."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def alerts() -> dict[str, str]:
    """The expressions of all alerts by name, without the comparison that makes them fire."""
    groups = YAML(typ="safe").load(MONITORING / "alerts.yml")["groups"]
    found = {rule["alert"]: rule["expr"].strip() for group in groups for rule in group["rules"]}
    assert all(COMPARISON.search(expression) for expression in found.values())
    return {name: COMPARISON.sub("", expression) for name, expression in found.items()}


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False
