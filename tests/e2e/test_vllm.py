"""(b) A real vLLM on CPU in a container, from the command line to a chat completion."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moorage.adapters.engines.engine_http import metrics_total, read_metrics
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.memory.calibration import CalibrationKey
from tests.e2e.conftest import VLLM_VERSION, vllm_engine
from tests.e2e.test_gateway import Gateway
from tests.e2e.test_keys import status
from tests.e2e.workplace import Workplace
from tests.openai_client import openai_client
from tests.prefect_server import PrefectServer

if TYPE_CHECKING:
    from openai import OpenAI

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]


CONTEXT = 1024


@pytest.fixture(scope="module")
def snapshot(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as the hub client's cache holds it: a folder of links to files elsewhere."""
    cache = tmp_path_factory.mktemp("models--acme--tiny")
    folder, blobs = cache / "snapshots" / "main", cache / "blobs"
    shutil.copytree(tiny_llama, blobs)
    folder.mkdir(parents=True)
    for number, file in enumerate(sorted(blobs.iterdir())):
        blob = file.rename(blobs / f"{number:064}")
        (folder / file.name).symlink_to(Path("../../blobs", blob.name))
    return folder


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, prefect_server: PrefectServer
) -> Iterator[Workplace]:
    """A host that other machines reach, with RAM for two engines."""
    place = Workplace(tmp_path_factory.mktemp("shared"), tiny_llama, prefect_server.environment)
    fleet = place.folder / "fleet.yaml"
    host = "name: local, bind: 0.0.0.0, ram: 8704MiB"
    fleet.write_text(fleet.read_text().replace("name: local", host))
    yield place
    place.close()


@pytest.fixture(scope="module")
def first(shared: Workplace, vllm_image: str, snapshot: Path) -> dict[str, Any]:
    """A release that serves until the last test that takes it has retired it."""
    usual = {"keep_cache": True, "env": {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}}
    engine = vllm_engine(vllm_image, **usual)
    spec = spec_of(shared, "first", vllm_image, source=f"file://{snapshot}", engine=engine)
    release: dict[str, Any] = shared.json("deploy", spec)["release"]
    return release


def spec_of(place: Workplace, name: str, image: str, **fields: Any) -> Path:
    cpu = {"accelerators": 0}
    usual = {"engine": vllm_engine(image), "placement": cpu, "context": CONTEXT, "concurrency": 2}
    return place.spec(name, **{**usual, **fields})


def client_of(place: Workplace, name: str, release: dict[str, Any]) -> OpenAI:
    key = place.run("key", "show", name).stdout.strip()
    endpoint = release["workloads"][0]["endpoint"]
    return openai_client(endpoint, key)


def test_vllm_serves_a_chat(shared: Workplace, first: dict[str, Any]) -> None:
    name = shared.named("first")
    client = client_of(shared, name, first)
    served = {model.id: model.model_extra or {} for model in client.models.list()}
    assert served[name]["max_model_len"] == CONTEXT
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=4
    )
    assert answer.usage
    assert answer.usage.completion_tokens == 4
    phases = [probe["phase"] for probe in first["readiness"][0]["probes"]]
    assert phases == ["listening", "healthy", "listed", "answered"]

    (measurement,) = first["measured"]
    measured = measurement["measured"]
    assert measured["kv_cache_bytes"] == GIB
    assert measured["kv_tokens"] == pytest.approx(measured["concurrency"] * CONTEXT)
    assert measurement["key"]["architecture"] == "LlamaForCausalLM"
    assert measurement["key"]["eager"]
    assert "KV cache" in shared.run("show", name).stdout
    assert "Application startup complete" in shared.run("logs", name).stdout


def test_it_asks_for_the_key_that_it_finds_in_the_file(
    shared: Workplace, first: dict[str, Any]
) -> None:
    name, (workload,) = shared.named("first"), first["workloads"]
    key = shared.run("key", "show", name).stdout.strip()
    inspected = ["docker", "inspect", workload["name"]]
    shown = subprocess.run(inspected, capture_output=True, text=True, check=True).stdout
    assert "moorage-prepare" in shown
    assert key not in shown
    assert status(workload["endpoint"]) == 401
    assert status(workload["endpoint"], f"Bearer {key}") == 200
    assert shared.run("chat", name, "hello").stdout
    assert key not in shared.run("logs", name).stdout


def test_the_usage_of_a_gateways_callers_is_what_the_engine_has_counted(
    shared: Workplace, first: dict[str, Any]
) -> None:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    name, (workload,) = shared.named("first"), first["workloads"]
    gateway = Gateway(shared)
    try:
        before = counted(workload["endpoint"])
        client = openai_client(gateway.url)
        count = ask_in_many_ways(client, name)
        shared.wait_until(lambda: used(shared, name)["requests"] == count)
        after = counted(workload["endpoint"])
        by_callers = used(shared, name)
    finally:
        shared.run("gateway", "down")
    assert by_callers["failed"] == 0
    engines = {one: after[one] - before[one] for one in after}
    assert {one: by_callers[one] for one in after} == engines


def ask_in_many_ways(client: OpenAI, model: str) -> int:
    """Ask, whole and streamed, by each API that tells its usage; how many requests it were.

    With `n` above 1 the engine counts the prompt once for each answer, and its usage does not.
    """
    messages: list[Any] = [{"role": "user", "content": "hello"}]
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    client.chat.completions.create(model=model, messages=messages, max_tokens=4)
    client.completions.create(model=model, prompt=["hello", "hello you"], max_tokens=3)
    client.responses.create(model=model, input="hello", max_output_tokens=5)
    for stream in (
        client.chat.completions.create(model=model, messages=messages, max_tokens=6, **options),
        client.completions.create(model=model, prompt="hello there", max_tokens=7, **options),
        client.responses.create(model=model, input="hello", max_output_tokens=8, stream=True),
    ):
        assert list(stream)
    return 6


def counted(endpoint: str) -> dict[str, int]:
    """The tokens that vLLM has counted since its start."""
    metrics = read_metrics(f"{endpoint}/metrics", 10)
    names = {"prompt_tokens": "prompt_tokens", "completion_tokens": "generation_tokens"}
    return {one: metrics_total(metrics, [f"vllm:{own}_total"]) or 0 for one, own in names.items()}


def used(place: Workplace, model: str) -> Counter[str]:
    """What callers have used, by kind."""
    kinds = ("requests", "failed", "prompt_tokens", "completion_tokens")
    lines = place.json("usage", "--model", model)
    return Counter({kind: sum(line[kind] for line in lines) for kind in kinds})


def test_two_engines_share_the_ram_of_a_host_and_a_third_gets_to_know_who_holds_it(
    shared: Workplace, first: dict[str, Any], vllm_image: str
) -> None:
    names = [shared.named(one) for one in ("first", "second")]
    second = shared.json("deploy", spec_of(shared, "second", vllm_image))["release"]
    for release, name in zip((first, second), names, strict=True):
        answer = client_of(shared, name, release).completions.create(
            model=name, prompt="hello", max_tokens=4
        )
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 4
    claimed = [claim.amount for claim in shared.claims() if claim.resource == Resource.RAM]
    assert len(claimed) == 2
    assert sum(claimed) <= 8704 << 20

    error = shared.json("plan", spec_of(shared, "third", vllm_image), code=3)["error"]
    assert error["cause"] == "no-fit"
    assert [name for name in names if f"{name}.v1" not in error["detail"]] == []
    assert f"Retire {names[0]}.v1" in error["suggestion"]

    for name in names:
        shared.run("retire", name)
    assert shared.is_clean()
    (measurement,) = second["measured"]
    kept = shared.ledger.measurements.latest(CalibrationKey.model_validate(measurement["key"]))
    assert kept
    assert kept.model_dump(mode="json") == measurement


def test_an_argument_that_vllm_does_not_know_is_refused_at_once(workplace: Workplace) -> None:
    spec = workplace.spec(
        engine={
            "name": "vllm",
            "runtime": "docker",
            "version": VLLM_VERSION,
            "args": ["--max-modle-len 1024"],
        },
    )
    for command in ("plan", "deploy", "memory"):
        error = workplace.json(command, spec, code=2)["error"]
        assert error["cause"] == "bad-spec"
        assert "--max-modle-len: vLLM 0.32.0 does not know it" in error["detail"]
        assert error["suggestion"] == "Did you mean `--max-model-len`?"
    assert workplace.releases() == []
    assert workplace.is_clean()


def test_an_argument_that_only_the_engine_can_judge(workplace: Workplace, vllm_image: str) -> None:
    """Nobody knows the version in this image, until its schema is made."""
    spec = workplace.spec(
        engine={
            "name": "vllm",
            "runtime": "docker",
            "image": vllm_image,
            "args": ["--no-such-flag"],
            "shm": "512MiB",
        },
        placement={"accelerators": 0},
    )
    (warning,) = workplace.json("plan", spec)["plan"]["warnings"]
    assert f"`moorage schema vllm --image {vllm_image}`" in warning
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "engine-bad-argument"
    assert "--no-such-flag" in error["evidence"]
    assert workplace.is_clean()

    schema = workplace.json("schema", "--image", vllm_image)
    assert schema["version"] == VLLM_VERSION
    error = workplace.json("deploy", spec, code=2)["error"]
    assert "--no-such-flag: vLLM 0.32.0 does not know it" in error["detail"]
    assert workplace.is_clean()
