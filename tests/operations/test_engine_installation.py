"""How an engine comes onto a host."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot
from moorage.operations.engine_installation import stand_in, way_on
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_cpu_host, a_host

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
