"""The probe's script runs in any shell, and its answer is read."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from moorage.common.units import MIB
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found
from moorage.inventory.survey.probe import SCRIPT, STORE, read_probe, read_vendors
from tests.inventory.survey.samples import sample


def test_the_script_tells_of_the_machine_that_it_runs_on() -> None:
    script = SCRIPT.replace(STORE, "/")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answer = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
    facts = read_probe(answer.stdout)
    memory = psutil.virtual_memory()
    assert facts.cores == psutil.cpu_count()
    assert facts.ram_total == memory.total
    assert facts.ram_free == pytest.approx(memory.available, rel=0.2)
    assert port in facts.ports
    disk = os.statvfs("/")
    assert facts.disk_free == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)
    assert facts.image_disk_free == pytest.approx(facts.disk_free, rel=0.2)


def test_the_script_measures_what_interrupted_downloads_left(tmp_path: Path) -> None:
    model = tmp_path / "models" / "acme--tiny-1.5"
    for name, size in (("abc.0123456789ab", 2), ("abc.ba9876543210", 1), ("local-def", 1)):
        begun = model / f"{name}.partial" / ".incomplete"
        begun.mkdir(parents=True)
        (begun / "model.safetensors").write_bytes(b"x" * size * MIB)
    (model / "whole").mkdir()
    script = SCRIPT.replace(STORE, str(tmp_path))
    answer = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
    begun_there = read_probe(answer.stdout.replace(str(tmp_path), STORE)).begun
    assert begun_there == {
        "acme--tiny-1.5/abc": pytest.approx(2 * MIB, rel=0.05),
        "acme--tiny-1.5/local-def": pytest.approx(MIB, rel=0.05),
    }


def test_a_host_has_accelerators_of_one_vendor_and_the_others_are_a_trouble() -> None:
    answer = "".join(
        f"== {name}\n{output}\n"
        for name, output in {
            "pci": "0x030200 0x10de\n0x120000 0x19e5",
            "tools": "nvidia-smi\nnpu-smi",
            "nvidia-driver": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15",
            "nvidia": "0, GPU-aaaa, NVIDIA H200, 143771, 140000, 3771, 570.86.15, Disabled",
            "nvidia-capability": "0, 9.0",
            "nvidia-runtime": "| NVIDIA-SMI 570.86.15   CUDA Version: 12.8  |",
            "ascend": sample("npu-smi-910b4.txt"),
            "ascend-nodes": "DEVNAME=davinci1\nDEVNAME=davinci0\nDEVNAME=davinci_manager",
            "meminfo": "MemTotal: 1024 kB\nMemAvailable: 512 kB",
            "cores": "4",
            "models": ' "source": "hf://org/a",\n "revision": "c0ffee",\n'
            ' "source": "file:///b",\n "revision": "1",',
        }.items()
    )
    facts = read_probe(answer)
    # A claim knows an accelerator by its index, and each vendor counts from 0.
    assert [(item.type, item.index) for item in facts.accelerators] == [("cuda", 0)]
    (trouble,) = facts.troubles
    assert trouble.startswith("cann:0, cann:1 are left out")
    assert (facts.accelerators[0].runtime_version, facts.accelerators[0].family) == ("12.8", "9.0")
    assert (facts.vendors, facts.tools) == (
        {"NVIDIA": 1, "Huawei": 1},
        ("nvidia-smi", "npu-smi"),
    )
    assert facts.ascend_nodes == (0, 1)
    assert facts.nvidia_driver
    assert facts.models == ("hf://org/a@c0ffee", "file:///b@1")
    assert (facts.ram_total, facts.cores, facts.disk_free) == (MIB, 4, None)


MI300A = """\
== amd-cards
card
address 0000:01:00.0
device 0x74a0
mem_info_vram_total 137438953472
mem_info_vram_used 0
"""
NPUS = f"== ascend\n{sample('npu-smi-910b4.txt')}\n"
NVML = Found(
    accelerators=(Accelerator(type="cuda", index=0, memory_total=8, memory_free=8),),
    links=((0, 1),),
)
LOST = Found(troubles=("GPU 0 cannot be used: GPU is lost",))


@pytest.mark.parametrize(
    ("answer", "nvml", "kinds", "unified", "links", "trouble"),
    [
        (MI300A, Found(), ["rocm"], True, (), ""),
        (MI300A, NVML, ["cuda"], False, ((0, 1),), "rocm:0 are left out"),
        (NPUS, NVML, ["cuda"], False, ((0, 1),), "cann:0, cann:1 are left out"),
        ("", LOST, [], False, (), "GPU is lost"),
        ("", Found(), [], False, (), ""),
    ],
)
def test_memory_and_links_are_those_of_the_vendor_that_is_used(
    answer: str,
    nvml: Found,
    kinds: list[str],
    unified: bool,
    links: tuple[tuple[int, ...], ...],
    trouble: str,
) -> None:
    seen = read_vendors(answer, (1, 1), nvml)
    assert [item.type for item in seen.accelerators] == kinds
    assert (seen.unified_memory, seen.links) == (unified, links)
    assert [trouble in one for one in seen.troubles] == [True] * bool(trouble)


def test_an_answer_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="exec format error"):
        read_probe("exec format error")
