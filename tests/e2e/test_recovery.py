"""A start that fails with a number is tried once more with it, and nothing is left of the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import installed_engine
from tests.e2e.drill import KILLED
from tests.e2e.interrupted import SECOND_TRY
from tests.e2e.test_failures import _failure_artifact
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

LENGTH, SHARE = "--max-model-len", "--gpu-memory-utilization"
STARTS = ["launch", "verify", "correct", "launch", "verify", "measure", "facts"]

GPU = """\
hosts:
- name: gpu-1
  ports: {low}-{high}
  runtimes: [process]
  accelerators: [{{type: cuda, index: 0, memory: 80GiB}}]
"""


def on_a_gpu(workplace: Workplace) -> Path:
    low = workplace.first_port
    path = workplace.folder / "gpu.yaml"
    path.write_text(GPU.format(low=low, high=low + 39))
    return path


def context_of(release: dict[str, Any], replica: int = 0) -> int:
    endpoint = release["workloads"][replica]["endpoint"]
    answer = httpx.get(f"{endpoint}/v1/models", timeout=10).json()
    return int(answer["data"][0]["max_model_len"])


@pytest.mark.parametrize(
    ("behaviour", "fields", "args", "cause", "stated"),
    [
        ("holds:1024", {}, [], "engine-kv-cache-too-small", ""),
        ("holds:1024", {"context": 2048}, [], "engine-kv-cache-too-small", "context"),
        ("ends:1024", {}, [f"{LENGTH} 4096"], "engine-context-too-long", "engine.args"),
    ],
)
def test_the_context_that_the_engine_names_is_served(
    workplace: Workplace,
    lifecycle_program: Path,
    behaviour: str,
    fields: dict[str, Any],
    args: list[str],
    cause: str,
    stated: str,
) -> None:
    engine = installed_engine(workplace, lifecycle_program, behaviour)
    spec = workplace.spec(engine={**engine, "args": args}, **fields)
    outcome = workplace.json("deploy", spec)
    release = outcome["release"]

    (correction,) = release["corrections"]
    assert (correction["option"], correction["value"]) == (LENGTH, "1024")
    assert (correction["cause"], correction["stated"]) == (cause, stated)
    assert "1024" in correction["evidence"]
    assert f"second try: {LENGTH} 1024 instead of {correction['before']}" in outcome["message"]
    assert context_of(release) == 1024

    (facts,) = release["facts"]
    assert (facts["version"], facts["context"], facts["planned_context"]) == ("0.32.0", 1024, 1024)
    last = release["plan"]["containers"][0]["command"][-1]
    assert (last["tokens"], last["origin"]) == ([LENGTH, "1024"], "derived")
    assert [step["name"] for step in release["steps"]][-7:] == STARTS
    assert workplace.running() == {f"moorage-{release['id']}-r0-leader"}

    name = workplace.named("tiny")
    for output in (workplace.run("show", name).stdout, workplace.run("status").stdout):
        assert "second try" in output.lower()
        assert correction["before"] in output
    assert "unchanged" in workplace.run("deploy", spec).stdout


def test_a_share_that_is_free_is_taken_within_the_same_claim(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    fleet = on_a_gpu(workplace)
    engine = installed_engine(workplace, lifecycle_program, "free:50")
    spec = workplace.spec(engine={**engine, "args": [f"{SHARE} 0.9"]})
    release = workplace.json("deploy", spec, "--fleet", fleet)["release"]
    (correction,) = release["corrections"]
    assert (correction["option"], correction["value"]) == (SHARE, "0.496")
    assert (correction["before"], correction["stated"]) == ("0.9", "engine.args")
    planned = {claim["amount"] for claim in claims_of(release)}
    assert {claim.amount for claim in workplace.claims() if claim.amount > 1} == planned


def test_the_replicas_that_start_later_are_corrected_with_the_first(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    fleet = on_a_gpu(workplace)
    engine = installed_engine(workplace, lifecycle_program, "holds:1024")
    spec = workplace.spec(engine=engine, replicas=2)
    release = workplace.json("deploy", spec, "--fleet", fleet)["release"]
    assert [seat["accelerators"] for seat in release["placement"]["seats"]] == [[0], [0]]
    assert len(release["corrections"]) == 1
    assert [context_of(release, replica) for replica in (0, 1)] == [1024, 1024]
    steps = [step["name"] for step in release["steps"]]
    assert (steps.count("correct"), steps.count("launch")) == (1, 3)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_second_try_that_fails_ends_the_deploy_with_nothing_left(
    workplace: Workplace, lifecycle_program: Path, replicas: int
) -> None:
    engine = installed_engine(workplace, lifecycle_program, "kv")
    spec = workplace.spec(engine=engine, replicas=replicas)
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "engine-kv-cache-too-small"
    assert workplace.is_clean()
    (row,) = workplace.releases()
    assert row.release
    assert len(row.release.corrections) == 1
    assert [step.name for step in row.release.steps].count("verify") == 2
    assert "second try" in workplace.run("show", row.id).stdout.lower()
    assert "engine-kv-cache-too-small" in _failure_artifact(workplace)


@pytest.mark.parametrize(
    ("behaviour", "suggestion"),
    [("holds:1024", "Set `context: 1024` or lower"), ("ends:1024", "Set `context: 1024` or lower")],
)
def test_a_spec_that_forbids_it_fails_at_the_first_try(
    workplace: Workplace, lifecycle_program: Path, behaviour: str, suggestion: str
) -> None:
    engine = installed_engine(workplace, lifecycle_program, behaviour)
    spec = workplace.spec(engine=engine, readiness={"second_try": False})
    error = workplace.json("deploy", spec, code=6)["error"]
    assert suggestion in error["suggestion"]
    assert workplace.is_clean()
    (row,) = workplace.releases()
    assert row.release
    assert row.release.corrections == ()
    assert [step.name for step in row.release.steps].count("launch") == 1


@pytest.mark.parametrize("point", SECOND_TRY)
def test_a_deploy_killed_around_its_second_try_leaves_nothing_that_hinders_the_next(
    workplace: Workplace, lifecycle_program: Path, point: str
) -> None:
    spec = workplace.spec(engine=installed_engine(workplace, lifecycle_program, "holds:1024"))
    workplace.run("deploy", spec, point=point, code=KILLED)
    workplace.run("deploy", spec)
    (running,) = [row for row in workplace.releases() if row.state == "running"]
    assert {claim.release for claim in workplace.claims()} == {running.id}
    assert workplace.running() == {f"moorage-{running.id}-r0-leader"}


def test_an_engine_that_died_is_shown_as_dead_though_it_ended_with_0(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = installed_engine(workplace, lifecycle_program, "ok")
    workplace.run("deploy", workplace.spec(engine=engine))
    (alive,) = workplace.json("status")
    assert alive["alive"]
    for process in workplace.processes():
        if process.name() == "vllm":
            process.terminate()  # it ends with 0, as vLLM does when its engine has died
    (dead,) = workplace.json("status")
    assert dead["observed"] == "dead: the process exited with code 0"
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def claims_of(release: dict[str, Any]) -> list[dict[str, Any]]:
    seats = release["placement"]["seats"]
    amounts = (amount for seat in seats for amount in seat["accelerator_bytes"])
    ram = (seat["ram_bytes"] for seat in seats if seat["ram_bytes"])
    return [{"amount": amount} for amount in (*amounts, *ram)]
