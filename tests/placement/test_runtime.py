from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import runner_rows
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersion, EngineVersions
from moorage.inventory.registries import Registries
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.placement.demand import Subject
from moorage.placement.propose import propose
from moorage.placement.request import request_for
from moorage.placement.runtime import (
    Hardware,
    can_share_image,
    choose_runtime,
    hardware_of_seat,
    image_on,
    shared_image,
)
from moorage.placement.view import Chip, view_of
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_cpu_host, a_fleet, a_host, a_profile, a_spec, an_accelerator
from tests.engines.planning import LLAMA_INSTALLED

VLLM = ENGINES[EngineName.VLLM]


def host_of(runtime: str = "", kind: str = "cuda", family: str = "", **more: Any) -> HostSnapshot:
    device = an_accelerator(type=kind, runtime_version=runtime, family=family)
    return a_host(accelerators=(device,), runtimes=(RuntimeName.DOCKER,), **more)


def on(host: HostSnapshot, kind: str = "cuda", index: int = 0) -> Hardware:
    return hardware_of_seat(host, kind, (index,))


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
    image = image_on(a_spec(), VLLM, on(host_of(runtime)))
    assert image.reference == reference
    assert image.newer_runtime == (runtime == "12.4")


@pytest.mark.parametrize(
    ("drivers", "reference"),
    [
        (("13.0", "12.4"), "vllm/vllm-openai:v0.32.0-cu129"),
        (("", "12.9", "13.2"), "vllm/vllm-openai:v0.32.0-cu129"),
        (("13.2", "13.0"), "vllm/vllm-openai:v0.32.0"),
        (("", ""), "vllm/vllm-openai:v0.32.0"),
    ],
)
def test_of_several_hosts_the_oldest_driver_decides(
    drivers: tuple[str, ...], reference: str
) -> None:
    places = [on(host_of(driver)) for driver in drivers]
    assert shared_image(a_spec(), VLLM, places).reference == reference


V100, H100 = (an_accelerator(at, family=family) for at, family in enumerate(("7.0", "9.0")))
OLD, NEW = "vllm/vllm-openai:v0.19.1", "vllm/vllm-openai:v0.19.1-cu130"


@pytest.mark.parametrize(
    ("used", "reference"),
    [([(0,)], OLD), ([(1,)], NEW), ([(0, 1)], OLD), ([(1,), (0,)], OLD)],
)
def test_the_oldest_chip_that_a_release_uses_decides(
    used: list[tuple[int, ...]], reference: str
) -> None:
    devices = [one.model_copy(update={"runtime_version": "13.0"}) for one in (V100, H100)]
    host, spec = a_host(accelerators=devices), a_spec(engine={"version": "0.19.1"})
    places = [hardware_of_seat(host, "cuda", indexes) for indexes in used]
    assert shared_image(spec, VLLM, places).reference == reference


def test_a_host_is_refused_only_if_no_chip_there_has_an_image() -> None:
    assert image_on(
        a_spec(), VLLM, Hardware(a_host(accelerators=(V100, H100)), Chip("cuda", "9.0"))
    )
    alone = host_of("13.0", family="7.0", name="gpu-1")
    with pytest.raises(
        Failure, match=r"gpu-1: .*the host's accelerators have 7\.0: ask for"
    ) as caught:
        propose(Subject(a_spec(), a_profile()), a_fleet(alone), ENGINES)
    assert "older than 0.20.0" in caught.value.detail


@pytest.mark.parametrize(
    ("one", "other", "can"),
    [
        (("13.0", "cuda"), ("12.4", "cuda"), True),
        (("13.0", "cuda"), ("7.0", "rocm"), False),
        (("13.0", "cuda"), ("", "cpu"), False),
        (("8.5", "cann", "Ascend910B3"), ("8.2", "cann", "Ascend910B1"), True),
        (("8.5", "cann", "Ascend910B3"), ("8.5", "cann", "Ascend310P3"), False),
    ],
)
def test_equal_hardware_can_share_an_image_whatever_its_driver(
    one: tuple[str, ...], other: tuple[str, ...], can: bool
) -> None:
    places = [on(host_of(*place), place[1]) for place in (one, other)]
    assert can_share_image(a_spec(), VLLM, *places) is can


def runners(*chips: str) -> tuple[CatalogueRow, ...]:
    record = {
        "backend": "cann",
        "backend_version": "8.5",
        "service": "vllm",
        "service_version": "0.18.0",
        "platform": "linux/amd64",
    }
    return runner_rows(
        record | {"backend_variant": chip, "docker_image": f"runner:{chip}"} for chip in chips
    )


def of_two_chips(second: str = "Ascend310P3", **stated: Any) -> HostSnapshot:
    """A host with a 910B4 and another chip, of a size and without names, as a fleet lists them."""
    chips = ("Ascend910B4", second)
    known: dict[str, Any] = {"type": "cann", "name": "", "runtime_version": "8.5"}
    return a_host(
        accelerators=[
            an_accelerator(index, family=chip, **known) for index, chip in enumerate(chips)
        ],
        runtimes=(RuntimeName.DOCKER,),
        **stated,
    )


@pytest.mark.parametrize(("index", "chip"), [(0, "910b"), (1, "310p")])
def test_the_chip_of_the_seat_decides_not_the_first_of_its_host(index: int, chip: str) -> None:
    host = of_two_chips(catalogue=runners("910b", "310p"))
    image = image_on(a_spec(), VLLM, on(host, "cann", index))
    assert image.reference == f"runner:{chip}"


def test_of_the_drivers_of_a_seat_the_oldest_decides() -> None:
    versions = ("13.0", "12.9", "")
    devices = [an_accelerator(at, runtime_version=one) for at, one in enumerate(versions)]
    host = a_host(accelerators=devices)
    seats = [(0,), (0, 1), (1, 2), (2,)]
    found = [hardware_of_seat(host, "cuda", seat).chip.runtime for seat in seats]
    assert found == ["13.0", "12.9", "12.9", ""]


def test_a_chip_without_an_image_is_left_out_though_another_of_its_type_has_one() -> None:
    host = of_two_chips(catalogue=runners("310p"))
    placement = propose(Subject(a_spec(), a_profile()), a_fleet(host), ENGINES)
    assert [seat.accelerators for seat in placement.seats] == [(1,)]
    listed = a_spec(placement={"accelerators": ["gpu-1:cann:0"]})
    with pytest.raises(Failure, match="is built for"):
        propose(Subject(listed, a_profile()), a_fleet(host), ENGINES)


@pytest.mark.parametrize(("second", "fits"), [("Ascend910B3", True), ("Ascend310P3", False)])
def test_replicas_are_on_chips_for_which_one_image_is_built(second: str, fits: bool) -> None:
    host = of_two_chips(second, catalogue=runners("910b", "310p"))
    two = a_spec(replicas=2, placement={"accelerators": 1})
    subject = Subject(two, a_profile(weight_bytes=50 * GIB))
    if fits:
        seats = propose(subject, a_fleet(host), ENGINES).seats
        assert sorted(seat.accelerators for seat in seats) == [(0,), (1,)]
        return
    with pytest.raises(Failure, match="1 of the replicas placed here already"):
        propose(subject, a_fleet(host), ENGINES)


def test_what_a_fleet_says_of_a_version_decides() -> None:
    versions = EngineVersions(versions={"0.30.1": EngineVersion(image="acme/vllm:7")})
    host = host_of(engines={"vllm": versions})
    spec = a_spec(engine={"version": "0.30.1"})
    assert image_on(spec, VLLM, on(host)).reference == "acme/vllm:7"


def test_a_host_whose_driver_runs_no_image_is_refused_with_the_reason() -> None:
    host = host_of("11.8")
    with pytest.raises(Failure, match=r"the host runs CUDA 11\.8") as caught:
        image_on(a_spec(), VLLM, on(host))
    assert caught.value.cause is Cause.NO_IMAGE
    with pytest.raises(Failure, match=r"gpu-1: .*the host runs CUDA 11\.8: update its driver"):
        propose(Subject(a_spec(), a_profile()), a_fleet(host), ENGINES)


def test_an_image_counts_as_there_under_the_name_of_its_registry() -> None:
    request = request_for(Subject(a_spec(), a_profile()), VLLM)
    there = frozenset({"mirror.io/vllm/vllm-openai:v0.32.0"})
    plain = view_of(host_of(images=there))
    mirrored = view_of(host_of(images=there, registries=Registries(default="mirror.io")))
    (kind,) = plain.groups
    assert not request.images.on(plain, kind)
    assert request.images.on(mirrored, kind)


TRANSFORMERS = ENGINES[EngineName.TRANSFORMERS]
BOTH = a_cpu_host(runtimes=("docker", "process"))
LLAMA = ENGINES[EngineName.LLAMA_CPP]
WITH_WHEEL = a_cpu_host(programs=(LLAMA_INSTALLED,))
WITH_LOCAL_BUILD = a_cpu_host(
    programs=(Program(engine=EngineName.VLLM, path="/v/vllm", version="0.32.0+cu129"),)
)


@pytest.mark.parametrize(
    ("wish", "engine", "host", "kind", "name"),
    [
        ({}, VLLM, a_host(), "cuda", RuntimeName.DOCKER),
        ({}, VLLM, a_host(), "cpu", RuntimeName.DOCKER),
        ({}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"image": "own:1"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.DOCKER),
        ({"runtime": "process"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"version": "5.23.0"}, TRANSFORMERS, BOTH, "cpu", RuntimeName.PROCESS),
        ({"command": ["serve"]}, VLLM, a_cpu_host(), "cpu", RuntimeName.PROCESS),
        ({"version": "11549"}, LLAMA, WITH_WHEEL, "cpu", RuntimeName.PROCESS),
        ({"version": "2026.10.11549"}, LLAMA, WITH_WHEEL, "cpu", RuntimeName.PROCESS),
        ({"version": "0.32.0"}, VLLM, WITH_LOCAL_BUILD, "cpu", RuntimeName.PROCESS),
        ({"version": "0.32.0+cu129"}, VLLM, WITH_LOCAL_BUILD, "cpu", RuntimeName.PROCESS),
    ],
)
def test_a_container_is_preferred_where_an_image_is_known(
    wish: dict[str, Any], engine: Any, host: HostSnapshot, kind: str, name: RuntimeName
) -> None:
    assert choose_runtime(a_spec(engine=wish), engine, on(host, kind)) == name


@pytest.mark.parametrize(
    ("wish", "engine", "host", "kind", "reasons"),
    [
        ({}, VLLM, a_cpu_host(), "cpu", ["docker: not available", "vllm is not installed"]),
        ({"runtime": "docker"}, VLLM, a_cpu_host(), "cpu", ["docker: not available"]),
        ({"runtime": "process"}, VLLM, BOTH, "cpu", ["process: vllm is not installed"]),
        ({"image": "own:1"}, TRANSFORMERS, a_cpu_host(), "cpu", ["the spec names an image"]),
        (
            {"version": "5.20.0"},
            TRANSFORMERS,
            a_cpu_host(),
            "cpu",
            ["transformers 5.23.0 is installed, 5.20.0 is requested"],
        ),
        ({"version": "11548"}, LLAMA, WITH_WHEEL, "cpu", ["11548 is requested"]),
        ({"version": "0.32.0+cpu"}, VLLM, WITH_LOCAL_BUILD, "cpu", ["0.32.0+cpu is requested"]),
        ({"packages": ["a"]}, TRANSFORMERS, a_cpu_host(), "cpu", ["never on a host"]),
        (
            {},
            TRANSFORMERS,
            a_cpu_host(engines={"transformers": EngineVersions(default_version="5.20.0")}),
            "cpu",
            ["transformers 5.23.0 is installed, 5.20.0 is requested"],
        ),
        (
            {"name": "custom", "custom": "acme"},
            ENGINES[EngineName.CUSTOM],
            a_cpu_host(),
            "cpu",
            ["acme comes in an image"],
        ),
        (
            {"runtime": "docker"},
            VLLM,
            a_host(architecture="arm64"),
            "rocm",
            ["built for amd64, the host is arm64"],
        ),
    ],
)
def test_without_any_runtime_every_obstacle_is_named(
    wish: dict[str, Any], engine: Any, host: HostSnapshot, kind: str, reasons: list[str]
) -> None:
    with pytest.raises(Refusal) as caught:
        choose_runtime(a_spec(engine=wish), engine, on(host, kind))
    assert all(reason in caught.value.note for reason in reasons)
