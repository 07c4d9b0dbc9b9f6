from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import runner_rows
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.inventory.registries import Registries
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.propose import propose
from moorage.placement.request import Subject, request_for
from moorage.placement.runtime import image_on, image_there
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_fleet, a_host, a_profile, a_spec, an_accelerator

VLLM = ENGINES[EngineName.VLLM]


def host_of(runtime: str = "", kind: str = "cuda", family: str = "", **more: Any) -> HostSnapshot:
    device = an_accelerator(type=kind, runtime_version=runtime, family=family)
    return a_host(accelerators=(device,), runtimes=(RuntimeName.DOCKER,), **more)


@pytest.mark.parametrize(
    ("runtime", "reference"),
    [
        ("13.0", "vllm/vllm-openai:v0.32.0"),
        ("12.9", "vllm/vllm-openai:v0.32.0-cu129"),
        ("12.4", "vllm/vllm-openai:v0.32.0-cu129"),
        ("", "vllm/vllm-openai:v0.32.0"),
    ],
)
def test_the_driver_of_the_host_decides(runtime: str, reference: str) -> None:
    image = image_on(a_spec(), VLLM, host_of(runtime), "cuda")
    assert image.reference == reference
    assert image.newer_runtime == (runtime == "12.4")


def test_the_chip_of_the_host_decides() -> None:
    record = {
        "backend": "cann",
        "backend_version": "8.5",
        "service": "vllm",
        "service_version": "0.18.0",
        "platform": "linux/amd64",
    }
    rows = runner_rows(
        record | {"backend_variant": chip, "docker_image": f"runner:{chip}"}
        for chip in ("910b", "310p")
    )
    host = host_of("8.5", "cann", "Ascend310P3", catalogue=rows)
    assert image_on(a_spec(), VLLM, host, "cann").reference == "runner:310p"


def test_what_a_fleet_says_of_a_version_decides() -> None:
    versions = EngineVersions(versions={"0.30.1": EngineVersion(image="acme/vllm:7")})
    host = host_of(engines={"vllm": versions})
    spec = a_spec(engine={"version": "0.30.1"})
    assert image_on(spec, VLLM, host, "cuda").reference == "acme/vllm:7"


def test_a_host_whose_driver_runs_no_image_is_refused_with_the_reason() -> None:
    host = host_of("11.8")
    with pytest.raises(Failure, match=r"the host runs CUDA 11\.8") as caught:
        image_on(a_spec(), VLLM, host, "cuda")
    assert caught.value.cause is Cause.NO_IMAGE
    with pytest.raises(Failure, match=r"gpu-1: .*the host runs CUDA 11\.8: update its driver"):
        propose(Subject(a_spec(), a_profile()), a_fleet(host), ENGINES)


def test_an_image_counts_as_there_under_the_name_of_its_registry() -> None:
    request = request_for(Subject(a_spec(), a_profile()), VLLM)
    there = frozenset({"mirror.io/vllm/vllm-openai:v0.32.0"})
    plain = host_of(images=there)
    mirrored = host_of(images=there, registries=Registries(default="mirror.io"))
    assert not image_there(request, plain, "cuda")
    assert image_there(request, mirrored, "cuda")
