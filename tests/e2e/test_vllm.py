"""(b) A real vLLM on CPU in a container, from the command line to a chat completion."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.memory.calibration_key import CalibrationKey
from tests.e2e.conftest import VLLM_VERSION, vllm_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]


@pytest.fixture
def snapshot(tiny_llama: Path, tmp_path: Path) -> Path:
    """The model as the hub client's cache holds it: a folder of links to files elsewhere."""
    folder = tmp_path / "snapshots" / "main"
    folder.mkdir(parents=True)
    for file in tiny_llama.iterdir():
        (folder / file.name).symlink_to(file)
    return folder


def test_vllm_serves_a_chat_until_it_is_retired(
    workplace: Workplace, vllm_image: str, snapshot: Path
) -> None:
    spec = workplace.spec(
        source=f"file://{snapshot}",
        engine=vllm_engine(vllm_image),
        placement={"accelerators": 0},
        context=1024,
    )
    name = workplace.named("tiny")
    release = workplace.json("deploy", spec)["release"]

    endpoint = release["workloads"][0]["endpoint"]
    client = openai.OpenAI(base_url=f"{endpoint}/v1", api_key="none", max_retries=0)
    served = {model.id: model.model_extra or {} for model in client.models.list()}
    assert served[name]["max_model_len"] == 1024
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=4
    )
    assert answer.usage
    assert answer.usage.completion_tokens == 4
    phases = [probe["phase"] for probe in release["readiness"][0]["probes"]]
    assert phases == ["listening", "healthy", "listed", "answered"]

    (measurement,) = release["measured"]
    measured = measurement["measured"]
    assert measured["kv_cache_bytes"] == GIB
    assert measured["kv_tokens"] == pytest.approx(measured["concurrency"] * 1024)
    assert measurement["key"]["architecture"] == "LlamaForCausalLM"
    assert measurement["key"]["eager"]
    assert "KV cache" in workplace.run("show", name).stdout

    assert "Application startup complete" in workplace.run("logs", name).stdout
    workplace.run("retire", name)
    assert workplace.is_clean()
    kept = workplace.ledger.measurements.latest(CalibrationKey.model_validate(measurement["key"]))
    assert kept
    assert kept.model_dump(mode="json") == measurement


def test_two_engines_share_the_ram_of_a_host_and_a_third_is_told_who_holds_it(
    workplace: Workplace, vllm_image: str
) -> None:
    engine = vllm_engine(vllm_image)
    specs = {
        name: workplace.spec(
            name, engine=engine, placement={"accelerators": 0}, context=1024, concurrency=2
        )
        for name in ("first", "second", "third")
    }
    fleet = workplace.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("ports:", "ram: 9GiB, ports:"))

    endpoints = [
        workplace.json("deploy", specs[name])["release"]["workloads"][0]["endpoint"]
        for name in ("first", "second")
    ]
    for endpoint, name in zip(endpoints, ("first", "second"), strict=True):
        client = openai.OpenAI(base_url=f"{endpoint}/v1", api_key="none", max_retries=0)
        answer = client.completions.create(
            model=workplace.named(name), prompt="hello", max_tokens=4
        )
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 4
    claimed = [claim.amount for claim in workplace.claims() if claim.resource == Resource.RAM]
    assert len(claimed) == 2
    assert sum(claimed) <= 9 * GIB

    error = workplace.json("plan", specs["third"], code=3)["error"]
    assert error["cause"] == "no-fit"
    for name in ("first", "second"):
        assert f"{workplace.named(name)}.v1" in error["detail"]
    assert f"Retire {workplace.named('first')}.v1" in error["suggestion"]


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
    assert f"`moorage schema --image {vllm_image}`" in warning
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "engine-bad-argument"
    assert "--no-such-flag" in error["evidence"]
    assert workplace.is_clean()

    schema = workplace.json("schema", "--image", vllm_image)
    assert schema["version"] == VLLM_VERSION
    error = workplace.json("deploy", spec, code=2)["error"]
    assert "--no-such-flag: vLLM 0.32.0 does not know it" in error["detail"]
    assert workplace.is_clean()
