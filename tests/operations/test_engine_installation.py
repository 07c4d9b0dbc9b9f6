"""How an engine comes onto a host."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot
from moorage.operations.engine_installation import stand_in, users_of, way_on
from moorage.releases.states import ReleaseState
from moorage.spec import EngineName, RuntimeName
from tests.builders import (
    a_claim,
    a_container,
    a_cpu_host,
    a_host,
    a_plan,
    a_release,
    a_row,
    a_spec,
)

BOTH = (RuntimeName.DOCKER, RuntimeName.PROCESS)
GPU = a_host(gpus=1)
WITH_DOCKER = a_cpu_host(runtimes=BOTH)
PLAIN = a_cpu_host(runtimes=(RuntimeName.PROCESS,))
REMOTE = a_cpu_host(runtimes=(), address="ssh://gpu-1")


@pytest.mark.parametrize(
    ("engine", "host", "wanted", "way", "image"),
    [
        ("vllm", GPU, "auto", "docker", "vllm/vllm-openai:"),
        ("triton", GPU, "auto", "docker", "nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3"),
        ("llama.cpp", WITH_DOCKER, "auto", "docker", "ghcr.io/ggml-org/llama.cpp:server-"),
        ("llama.cpp", WITH_DOCKER, "process", "process", ""),
        ("llama.cpp", PLAIN, "auto", "process", ""),
        ("transformers", WITH_DOCKER, "auto", "process", ""),  # it has no official image
    ],
)
def test_the_image_that_suits_the_host_else_the_packages(
    engine: EngineName, host: HostSnapshot, wanted: RuntimeName, way: str, image: str
) -> None:
    spec = stand_in(EngineName(engine), "", RuntimeName(wanted))

    found, chosen = way_on(ENGINES[EngineName(engine)], host, spec)

    assert found == way
    assert (chosen.reference if chosen else "").startswith(image)
    assert bool(chosen) == bool(image)


@pytest.mark.parametrize(
    ("engine", "host", "wanted", "why"),
    [
        ("triton", WITH_DOCKER, "auto", "no official image of triton for cpu"),
        ("llama.cpp", PLAIN, "docker", "has no Docker that answers"),
        ("llama.cpp", REMOTE, "auto", "another machine"),
        ("llama.cpp", REMOTE, "process", "another machine"),
    ],
)
def test_what_cannot_be_had_is_refused(
    engine: str, host: HostSnapshot, wanted: str, why: str
) -> None:
    spec = stand_in(EngineName(engine), "", RuntimeName(wanted))

    with pytest.raises((Failure, Refusal), match=why):
        way_on(ENGINES[EngineName(engine)], host, spec)


@pytest.mark.parametrize("name", [EngineName.AUTO, EngineName.CUSTOM])
def test_a_name_without_an_engine_is_refused(name: EngineName) -> None:
    with pytest.raises(Failure, match="names no engine") as refused:
        stand_in(name, "", RuntimeName.AUTO)

    assert refused.value.cause == Cause.BAD_SETTING


@pytest.mark.parametrize(
    ("version", "known", "used"),
    [
        ("", "0.32.0", True),
        ("0.32.0", "0.32.0", True),
        ("0.31.0", "0.32.0", False),
        ("0.31.0", "", True),  # it may run any version
    ],
)
def test_a_release_needs_the_version_that_it_runs(version: str, known: str, used: bool) -> None:
    plan = a_plan(a_container(host=GPU.name), engine_version=known)
    rows = [a_row(a_release(plan=plan))]

    found = users_of(ENGINES[EngineName.VLLM], version, GPU, rows, {})

    assert found == ["tiny"] * used


@pytest.mark.parametrize(
    ("state", "host", "engine", "used"),
    [
        ("pending", "", {"name": "vllm"}, True),
        ("downloading", GPU.name, {"name": "vllm"}, True),
        ("starting", GPU.name, {}, True),  # the fleet decides the engine
        ("starting", "gpu-9", {}, False),
        ("starting", GPU.name, {"name": "sglang"}, False),
        ("starting", GPU.name, {"image": "mine", "command": ["serve"]}, False),
        ("starting", GPU.name, {"name": "vllm", "version": "0.1.0"}, False),
    ],
)
def test_a_release_needs_its_engine_before_it_has_a_record(
    state: ReleaseState, host: str, engine: dict[str, Any], used: bool
) -> None:
    rows = [a_row(state=ReleaseState(state))]
    claims = tuple(a_claim(host=name, release="tiny.v1") for name in filter(None, [host]))
    specs = {"tiny.v1": a_spec(engine=engine)}

    vllm, there = ENGINES[EngineName.VLLM], GPU.with_claims(claims)

    assert users_of(vllm, "0.32.0", there, rows, specs) == ["tiny"] * used
