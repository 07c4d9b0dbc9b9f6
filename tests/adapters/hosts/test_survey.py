"""A fleet is looked at in the time of its slowest host, and dead ones hold up nobody."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from moorage.adapters.hosts import remote_host, survey
from moorage.adapters.hosts.survey import (
    fleet_snapshot,
    runner_images,
    survey_host,
    survey_hosts,
)
from moorage.adapters.system.parallel import map_parallel
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.survey.facts import HostFacts
from moorage.inventory.survey.probe import read_vendors
from moorage.spec import RuntimeName
from tests.builders import a_claim, a_host, an_accelerator
from tests.simulated_hosts import SimulatedHosts

GENEROUS = 90.0
"""The machine may be busy; `benchmarks/survey.py` tells what it really takes."""


def test_of_200_hosts_the_20_dead_ones_are_waited_for_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silence = 8
    monkeypatch.setattr(remote_host, "ASK_SECONDS", silence)
    done: list[float] = []
    with SimulatedHosts(180, 20) as simulated:
        began = time.monotonic()
        seen = survey_hosts(
            simulated.fleet, GENEROUS, lambda: done.append(time.monotonic() - began)
        )
        took = time.monotonic() - began
    assert took < 20 * silence
    dead = {at for at, host in enumerate(seen) if host.unreachable}
    assert dead == simulated.dead
    assert [host.name for host in seen] == [f"sim-{at}" for at in range(200)]
    assert all(len(host.accelerators) == 8 for at, host in enumerate(seen) if at not in dead)
    assert all("timed out" in seen[at].unreachable for at in dead)
    assert len(done) == 200


def test_what_a_probe_measured_of_a_store_is_known_of_its_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = {"acme--tiny/abc": GIB}
    facts = HostFacts(cores=1, ram_total=GIB, ram_free=GIB, disk_free=2 * GIB, begun=begun)
    monkeypatch.setattr(survey, "survey_remote_host", lambda *_: facts)
    seen = survey_host(Host(name="gpu-1", address="ssh://gpu-1", bind="10.0.0.1"))
    assert (seen.disk_free, seen.begun) == (2 * GIB, begun)


def test_a_host_that_takes_too_long_is_unreachable_with_the_time_it_had() -> None:
    with SimulatedHosts(1, 1) as simulated:
        (gone, seen) = survey_hosts(simulated.fleet, 1.0)
    assert gone.unreachable == "it did not answer within 1 s"
    assert (gone.name, gone.bind) == ("sim-0", "10.0.0.1")
    assert (seen.unreachable, seen.accelerators[0].uuid) == ("", "GPU-1-0")
    assert seen.image_disk_free == 12 * GIB


def test_what_has_not_ended_in_time_is_a_time_out_and_errors_stay_with_their_item() -> None:
    forever = threading.Event()

    def work(item: str) -> str:
        if item == "slow":
            forever.wait()
        if item == "wrong":
            raise ValueError(item)
        return item.upper()

    first, slow, wrong = map_parallel(work, ("fine", "slow", "wrong"), 0.5)
    forever.set()
    assert first == "FINE"
    assert isinstance(slow, TimeoutError)
    assert isinstance(wrong, ValueError)


def test_this_machine_is_seen_as_it_is() -> None:
    seen = survey_host(Host(name="here", runtimes=("process",)))
    assert seen.unreachable == ""
    assert seen.runtimes == (RuntimeName.PROCESS,)
    assert seen.cpus == psutil.cpu_count()
    assert seen.ram_total == psutil.virtual_memory().total
    assert 0 < seen.ram_free <= seen.ram_total


WSL, USUAL = "6.6.87.2-microsoft-standard-WSL2", "6.8.0-45-generic"


@pytest.mark.parametrize(("kernel", "exposed"), [(WSL, True), (USUAL, False)])
@pytest.mark.parametrize("remote", [False, True])
def test_under_wsl_a_container_sees_all_gpus(
    monkeypatch: pytest.MonkeyPatch, remote: bool, kernel: str, exposed: bool
) -> None:
    """Docker Desktop and the distributions of WSL share its kernel."""
    monkeypatch.setattr("platform.release", lambda: USUAL if remote else kernel)
    ask = remote_host.ask_daemon
    monkeypatch.setattr(
        remote_host, "ask_daemon", lambda access: {**ask(access), "KernelVersion": kernel}
    )
    if remote:
        with SimulatedHosts(1, 0) as simulated:
            (seen,) = survey_hosts(simulated.fleet, GENEROUS)
    else:
        seen = survey_host(Host(name="here", runtimes=("process",)))
    assert (seen.unreachable, seen.exposes_all_gpus) == ("", exposed)


@pytest.mark.parametrize(
    ("refuses", "runtimes", "needed"),
    [
        (True, {"nvidia": {}, "runc": {}}, True),
        (True, {"runc": {}}, False),
        (True, None, False),
        (False, {"nvidia": {}}, False),
    ],
)
def test_docker_here_has_to_list_the_runtime_that_containers_need(
    monkeypatch: pytest.MonkeyPatch, refuses: bool, runtimes: Any, needed: bool
) -> None:
    monkeypatch.setattr(survey, "docker_version", lambda _: ("28.0.1", ""))
    monkeypatch.setattr(survey, "refuses_device_requests", lambda _: refuses)
    monkeypatch.setattr(survey, "connection", lambda *_: nullcontext())
    monkeypatch.setattr(survey, "image_names", lambda _: frozenset())
    monkeypatch.setattr(survey, "ask_daemon", lambda _: {"Runtimes": runtimes})
    seen = survey_host(Host(name="here", address="unix:///nowhere/docker.sock"))
    assert seen.needs_nvidia_runtime == needed


def test_what_is_written_down_wins_over_what_is_detected() -> None:
    host = Host.model_validate(
        {
            "name": "here",
            "runtimes": ["process"],
            "ram": "1GiB",
            "reserve": {"ram": "256MiB"},
            "accelerators": [{"type": "cuda", "index": 3, "memory": "80GiB", "exclusive": True}],
        }
    )
    seen = survey_host(host)
    assert (seen.ram_total, seen.ram_reserve) == (GIB, GIB // 4)
    assert seen.ram_free <= GIB
    (gpu,) = seen.accelerators
    assert (gpu.type, gpu.index, gpu.memory_free) == ("cuda", 3, 80 * GIB)
    assert gpu.exclusive


def test_claims_follow_their_devices_also_past_those_that_are_avoided(tmp_path: Path) -> None:
    devices = [an_accelerator(index, uuid=uuid) for index, uuid in enumerate("BC")]
    fleet = Fleet.model_validate(
        {"hosts": [{"name": "gpu-1"}], "avoid": [{"host": "gpu-1", "accelerators": [0]}]}
    )
    claims = tuple(
        a_claim(Resource.ACCELERATOR, GIB, index, device="ABC"[index]) for index in range(3)
    )
    (seen,) = fleet_snapshot([a_host(accelerators=devices)], fleet, claims, tmp_path).hosts
    assert [item.uuid for item in seen.accelerators] == ["C"]
    assert [(one.device, one.index) for one in seen.claims] == [("B", 0), ("C", 1)]


def test_accelerators_that_hide_are_known_to_do_so_until_they_are_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = "== ascend\ndcmi module initialize failed. ret is -8005\n"
    monkeypatch.setattr(survey, "local_accelerators", lambda: read_vendors(answer, (GIB, GIB)))
    host = {"name": "here", "runtimes": ["process"]}
    assert survey_host(Host.model_validate(host)).hides_accelerators
    written = {**host, "accelerators": [{"type": "cann", "index": 0, "memory": "32GiB"}]}
    assert not survey_host(Host.model_validate(written)).hides_accelerators


@pytest.mark.parametrize(
    ("kind", "written", "family"),
    [
        ("cann", "310P3", "Ascend310P3"),
        ("cann", "ascend910b3", "ascend910b3"),
        ("cann", "", ""),
        ("rocm", "gfx942", "gfx942"),
    ],
)
def test_a_chip_may_be_written_down_as_npu_smi_shows_it(
    kind: str, written: str, family: str
) -> None:
    chip = {"type": kind, "index": 0, "memory": "44GiB", "family": written}
    host = {"name": "here", "runtimes": ["process"], "accelerators": [chip]}
    (seen,) = survey_host(Host.model_validate(host)).accelerators
    assert seen.family == family


def test_a_host_without_any_runtime_is_unreachable_with_the_reason() -> None:
    seen = survey_host(Host(name="gone", address="unix:///nowhere/docker.sock"))
    assert seen.runtimes == ()
    assert "/nowhere/docker.sock" in seen.unreachable


def record(kind: str, platform: str = "linux/amd64", **more: Any) -> dict[str, Any]:
    return {
        "backend": kind,
        "backend_version": "1.0",
        "backend_variant": "",
        "service": "vllm",
        "service_version": "0.9.2",
        "platform": platform,
        "docker_image": f"gpustack/runner:{kind}1.0-vllm0.9.2",
        "deprecated": False,
        "dependencies": {"torch": "2.7"},
        **more,
    }


RECORDS = [record("musa"), record("dtk"), record("cann", "linux/arm64"), record("cuda")]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, with these records in it."""
    fake: Any = ModuleType("gpustack_runner")
    fake.__spec__ = importlib.util.spec_from_loader("gpustack_runner", None)
    fake.list_runners = lambda todict: RECORDS if todict else None
    monkeypatch.setitem(sys.modules, "gpustack_runner", fake)
    runner_images.cache_clear()
    yield
    runner_images.cache_clear()


@pytest.mark.usefixtures("package")
def test_a_host_gets_the_images_for_its_own_hardware() -> None:
    found = runner_images(frozenset({"musa", "dcu", "cann"}), "amd64")
    assert [(row.accelerator_type, row.reference("0.9.2")) for row in found] == [
        ("musa", "gpustack/runner:musa1.0-vllm0.9.2"),
        ("dcu", "gpustack/runner:dtk1.0-vllm0.9.2"),
    ]
    assert runner_images(frozenset(), "amd64") == ()


def test_without_the_package_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "RUNNER_PACKAGE", "a_package_that_nobody_has")
    runner_images.cache_clear()
    assert runner_images(frozenset({"musa"}), "amd64") == ()
    runner_images.cache_clear()


def test_the_package_as_it_is_published_can_be_read() -> None:
    pytest.importorskip("gpustack_runner", reason="gpustack-runner is not installed")
    assert {row.variant for row in runner_images(frozenset({"cann"}), "arm64")} >= {"910b", "310p"}
