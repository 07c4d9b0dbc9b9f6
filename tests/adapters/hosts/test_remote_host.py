"""A host is probed once, and again only where its accelerators want more than `/sys`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.adapters.hosts.remote_host import probe_host
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import HostFacts
from moorage.inventory.survey.vendors import (
    AMD,
    BY_NVIDIA_RUNTIME,
    HANDED,
    HUAWEI,
    NOTHING,
    NVIDIA,
    Handed,
    handed_to,
)

TOOLKIT: dict[str, Any] = {"Runtimes": {"nvidia": {}, "runc": {}}}
NO_TOOLKIT: dict[str, Any] = {"Runtimes": {"runc": {}}}
REFUSED = Failure(Cause.ACCELERATOR_RUNTIME_MISSING, "could not select device driver")

Ask = Callable[..., tuple[HostFacts, list[Handed]]]


def facts(kind: str = "", **known: Any) -> HostFacts:
    one = Accelerator(type=kind, index=0, memory_total=GIB, memory_free=GIB)
    return HostFacts(
        cores=1, ram_total=GIB, ram_free=GIB, accelerators=(one,) if kind else (), **known
    )


@pytest.fixture
def ask() -> Ask:
    """Probe a host that answers so, by what a probe is handed."""

    def ask(
        info: dict[str, Any], answers: dict[str, HostFacts | Failure], gpus: bool = True
    ) -> tuple[HostFacts, list[Handed]]:
        probes: list[Handed] = []

        def probe(handed: Handed) -> HostFacts:
            probes.append(handed)
            names = [name for name in HANDED if handed == handed_to(name, 2)]
            answer = answers[names[0] if names else handed.runtime]
            if isinstance(answer, Failure):
                raise answer
            return answer

        return probe_host(probe, info, gpus), probes

    return ask


def test_without_accelerators_one_probe_is_enough(ask: Ask) -> None:
    seen, probes = ask(NO_TOOLKIT, {"": facts()})
    assert probes == [NOTHING]
    assert (seen.accelerators, seen.troubles) == ((), ())


def test_with_the_toolkit_one_probe_is_enough_too(ask: Ask) -> None:
    seen, probes = ask(TOOLKIT, {NVIDIA: facts("cuda", vendors={NVIDIA: 2})})
    assert probes == [HANDED[NVIDIA]]
    assert [item.type for item in seen.accelerators] == ["cuda"]


def test_a_toolkit_that_docker_does_not_list_may_work_all_the_same(ask: Ask) -> None:
    answers = {"": facts(vendors={NVIDIA: 2}), NVIDIA: facts("cuda", vendors={NVIDIA: 2})}
    seen, probes = ask(NO_TOOLKIT, answers)
    assert probes == [NOTHING, HANDED[NVIDIA]]
    assert seen.troubles == ()
    assert [item.type for item in seen.accelerators] == ["cuda"]


@pytest.mark.parametrize("info", [TOOLKIT, NO_TOOLKIT])
def test_gpus_that_cannot_be_handed_out_are_a_trouble(ask: Ask, info: dict[str, Any]) -> None:
    seen, _ = ask(info, {"": facts(vendors={NVIDIA: 2}), NVIDIA: REFUSED})
    assert seen.accelerators == ()
    assert seen.troubles == ("NVIDIA accelerators are there, but could not select device driver",)


def test_a_toolkit_on_a_host_without_gpus_is_no_trouble(ask: Ask) -> None:
    seen, probes = ask(TOOLKIT, {NVIDIA: REFUSED, "": facts()})
    assert len(probes) == 2
    assert seen.troubles == ()


JETSON = {**TOOLKIT, "KernelVersion": "5.15.148-tegra"}
HOOK = Failure(
    Cause.ACCELERATOR_RUNTIME_MISSING,
    "probe: Using requested mode 'cdi'\ninvoking the NVIDIA Container Runtime Hook directly (e.g."
    " specifying the docker --gpus flag) is not supported. Please use the NVIDIA Container Runtime"
    " (e.g. specify the --runtime=nvidia flag) instead.",
)
NO_GPU = Failure(Cause.ACCELERATOR_RUNTIME_MISSING, "probe: unresolvable CDI devices")


@pytest.mark.parametrize(
    ("info", "ways"),
    [
        (TOOLKIT, [HANDED[NVIDIA], BY_NVIDIA_RUNTIME]),
        (JETSON, [BY_NVIDIA_RUNTIME]),
    ],
    ids=["a toolkit in mode cdi", "a Jetson"],
)
def test_where_device_requests_are_refused_nvidias_runtime_shows_the_gpus(
    ask: Ask, info: dict[str, Any], ways: list[Handed]
) -> None:
    seen, probes = ask(info, {NVIDIA: HOOK, "nvidia": facts("cuda")})
    assert probes == ways
    assert (len(seen.accelerators), seen.troubles) == (1, ())
    assert seen.needs_nvidia_runtime


def test_where_device_requests_work_containers_make_them(ask: Ask) -> None:
    seen, _ = ask(TOOLKIT, {NVIDIA: facts("cuda", vendors={NVIDIA: 2})})
    assert not seen.needs_nvidia_runtime


@pytest.mark.parametrize(
    ("info", "answers", "trouble"),
    [
        (JETSON, {"nvidia": HOOK}, "the GPU of this Jetson cannot be used: probe: Using"),
        (JETSON, {"nvidia": facts()}, "the GPU of this Jetson cannot be used: no probe finds it"),
        (JETSON | NO_TOOLKIT, {}, "Docker needs the runtime `nvidia`"),
        (TOOLKIT, {NVIDIA: HOOK, "nvidia": HOOK}, "NVIDIA's container toolkit fails: probe: Using"),
        (TOOLKIT, {NVIDIA: HOOK, "nvidia": NO_GPU}, ""),
        (TOOLKIT | {"KernelVersion": "6.6.87-microsoft-standard-WSL2"}, {NVIDIA: REFUSED}, "fails"),
    ],
)
def test_a_gpu_that_the_bus_does_not_show_and_no_probe_finds_is_a_trouble(
    ask: Ask, info: dict[str, Any], answers: dict[str, HostFacts | Failure], trouble: str
) -> None:
    seen, _ = ask(info, {"": facts(), **answers})
    assert seen.accelerators == ()
    assert [trouble in one for one in seen.troubles] == [True] * bool(trouble)


def test_a_jetson_whose_gpu_is_listed_needs_the_runtime_too(ask: Ask) -> None:
    seen, probes = ask(JETSON, {"": facts()}, gpus=False)
    assert (seen.needs_nvidia_runtime, probes) == (True, [NOTHING])


def test_every_chip_of_ascend_is_handed_over(ask: Ask) -> None:
    answers = {"": facts(vendors={HUAWEI: 2}), HUAWEI: facts("cann", vendors={HUAWEI: 2})}
    seen, probes = ask(NO_TOOLKIT, answers)
    assert probes[1].devices[-1] == "/dev/davinci1"
    assert [item.type for item in seen.accelerators] == ["cann"]


def test_the_device_files_of_ascend_that_are_there_are_handed_over() -> None:
    probes: list[Handed] = []

    def probe(handed: Handed) -> HostFacts:
        probes.append(handed)
        return facts("cann", vendors={HUAWEI: 1}, ascend_nodes=(1, 2))

    probe_host(probe, NO_TOOLKIT, True)
    assert probes[1].devices[-2:] == ("/dev/davinci1", "/dev/davinci2")


@pytest.mark.parametrize(("tools", "count"), [((), 1), (("amd-smi",), 2)])
def test_amd_is_asked_again_only_where_a_tool_is_there(
    ask: Ask, tools: tuple[str, ...], count: int
) -> None:
    known = facts("rocm", vendors={AMD: 2}, tools=tools)
    seen, probes = ask(NO_TOOLKIT, {"": known, AMD: known})
    assert len(probes) == count
    assert (len(seen.accelerators), seen.troubles) == (1, ())


def test_a_vendor_that_nobody_asks_is_named(ask: Ask) -> None:
    seen, _ = ask(NO_TOOLKIT, {"": facts(vendors={"Cambricon": 8})})
    assert "accelerators of Cambricon are there that tell nothing" in seen.troubles[0]


def test_where_accelerators_are_written_down_none_are_looked_for(ask: Ask) -> None:
    known = facts("rocm", vendors={AMD: 2, "Cambricon": 1}, troubles=("GPU 1 is lost",))
    seen, probes = ask(TOOLKIT, {"": known}, gpus=False)
    assert probes == [NOTHING]
    assert (seen.accelerators, seen.troubles) == ((), ())
