from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.engines.launch import LaunchPlan, planned_workload
from moorage.engines.workload import Workload
from moorage.memory.calibration import Measurement
from moorage.placement.placement import Placed
from moorage.readiness.engine_facts import EngineFacts
from moorage.spec import EngineName, RuntimeName
from tasks import measure as step
from tasks.context import ledger
from tasks.journal import journal
from tasks.measure import measure, read_facts, record_measurements
from tests.builders import (
    REVISION,
    a_container,
    a_cpu_host,
    a_fleet,
    a_host,
    a_measurement,
    a_model,
    a_placement,
    a_plan,
    a_profile,
    a_release,
    a_spec,
)
from tests.http_server import QuietHandler, serving
from tests.prefect_server import free_port
from tests.tasks.test_journal import Ear

pytestmark = pytest.mark.usefixtures("own_home")

LOG = (
    "(Worker pid=36) INFO 11-21 03:31:14 [cpu_worker.py:260] Explicitly set (1.0/16.46) GiB for KV"
    " cache on node 0.\n"
    "INFO:     Application startup complete.\n"
)

ANSWERS = {
    "/version": {"version": "0.32.0"},
    "/v1/models": {"data": [{"id": "tiny", "max_model_len": 2048}]},
}


def planned(*names: str, engine: EngineName = EngineName.VLLM, **changes: Any) -> LaunchPlan:
    containers = tuple(a_container(name=name, **changes) for name in names)
    return a_plan(*containers, engine=engine)


def logged(home: Path, workload: str, text: str) -> None:
    """The log of a process, where the runtime keeps it."""
    folder = home / "run" / workload
    folder.mkdir(parents=True)
    (folder / "log").write_text(text)


PLACEMENT = a_placement(a_spec(), a_host())
"""On an accelerator, whose memory is predicted."""


def measured(plan: LaunchPlan) -> tuple[tuple[Measurement, ...], Ear]:
    ear = Ear()
    workloads: tuple[Workload, ...] = tuple(map(planned_workload, plan.containers))
    fleet = a_fleet(a_cpu_host("local"))
    with journal(ear):
        placed = Placed(a_spec(), a_model(), a_profile(), PLACEMENT, fleet, "tiny.v1")
        found = asyncio.run(measure.fn(placed, plan, workloads))
    return found, ear


def test_each_workload_is_recorded_with_what_it_said(tmp_path: Path) -> None:
    logged(tmp_path, "one", LOG)
    logged(tmp_path, "other", LOG.replace("1.0/", "2.0/"))
    found, ear = measured(planned("one", "other"))
    assert [(one.workload, one.measured.kv_cache_bytes) for one in found] == [
        ("one", GIB),
        ("other", 2 * GIB),
    ]
    assert found[0].predicted == PLACEMENT.predicted
    assert "kv_cache" in PLACEMENT.predicted
    assert (found[0].release, found[0].key.accelerator_type) == ("tiny.v1", "cpu")
    assert ear.heard == ["measure started", "measure ended: KV cache 1.0 GiB"]


def test_the_whole_log_of_a_start_is_read(tmp_path: Path) -> None:
    logged(tmp_path, "one", LOG + "INFO something else\n" * 5000)
    assert len(measured(planned("one"))[0]) == 1


@pytest.mark.parametrize("text", ["", "INFO:     Application startup complete.\n"])
def test_an_engine_that_logs_nothing_about_memory_has_no_record(tmp_path: Path, text: str) -> None:
    logged(tmp_path, "one", text)
    found, ear = measured(planned("one"))
    assert found == ()
    assert ear.heard[-1] == "measure ended: the engine logged nothing about memory"


def test_an_engine_whose_log_nobody_can_read_is_not_asked(tmp_path: Path) -> None:
    logged(tmp_path, "one", LOG)
    found, ear = measured(planned("one", engine=EngineName.TRANSFORMERS))
    assert (found, ear.heard) == ((), [])


def test_a_log_that_cannot_be_read_is_told_and_nothing_else(tmp_path: Path) -> None:
    away = a_container(name="away", runtime=RuntimeName.DOCKER, address="tcp://127.0.0.1:1")
    plan = planned("one")
    plan = plan.model_copy(update={"containers": (away, *plan.containers)})
    logged(tmp_path, "one", LOG)
    found, ear = measured(plan)
    assert [one.workload for one in found] == ["one"]
    assert ear.heard[1].startswith("what away logged about memory could not be read: The container")


def kept(release: str) -> tuple[str, Ear]:
    ear = Ear()
    record = a_release(release, measured=(a_measurement(release=release),))
    with journal(ear):
        record_measurements(record)
    found = ledger().measurements.latest(a_measurement().key)
    return found.release if found else "", ear


def test_what_a_release_measured_is_kept_for_later() -> None:
    release = ledger().releases.begin(a_spec(), REVISION, "")
    assert kept(release)[0] == release


def test_that_it_cannot_be_kept_is_told_and_nothing_else() -> None:
    found, ear = kept("ghost.v1")
    assert found == ""
    assert ear.heard[0].startswith("what ghost.v1 measured could not be kept: The ledger")


class Engine(QuietHandler):
    """Answers as vLLM does, models only to who has the key."""

    def do_GET(self) -> None:
        guarded = self.path.startswith("/v1") and self.headers["Authorization"] != "Bearer hush"
        self.send_response(401 if guarded else 200)
        self.end_headers()
        self.wfile.write(json.dumps({} if guarded else ANSWERS[self.path]).encode())


@pytest.fixture
def port() -> Iterator[int]:
    with serving(Engine) as port:
        yield port


def read(
    port: int, environment: tuple[Variable, ...] = (), *measured: Any
) -> tuple[tuple[EngineFacts, ...], Ear]:
    plan = a_plan(a_container(port=port, environment=environment))
    ear = Ear()
    with journal(ear):
        return asyncio.run(read_facts.fn(plan, measured)), ear


def test_a_guarded_engine_is_asked_with_its_key(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "hush")
    key = Variable(name="VLLM_API_KEY", secret="OUR_KEY", origin=Origin.USER, reason="secrets")
    (found,), _ = read(port, (key,), a_measurement())
    assert (found.version, found.names, found.context) == ("0.32.0", ("tiny",), 2048)
    assert found.kv_tokens == 491520


def test_an_engine_that_refuses_to_list_still_tells_its_version(port: int) -> None:
    (found,), ear = read(port)
    assert (found.version, found.names, found.context) == ("0.32.0", (), None)
    assert ear.heard[-1] == "facts ended: version 0.32.0"


def test_an_engine_that_does_not_answer_fails_nothing() -> None:
    (found,), ear = read(free_port())
    assert (found.version, found.names) == ("", ())
    assert ear.heard[-1].endswith("names no version and no context")


def test_whatever_goes_wrong_is_told_and_fails_nothing(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object) -> tuple[int, Any]:
        raise RuntimeError("the network is on fire")

    monkeypatch.setattr(step, "ask", breaks)
    found, ear = read(port)
    assert found == ()
    assert any("the network is on fire" in text for text in ear.heard)
