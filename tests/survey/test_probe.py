"""The probe's script runs in any shell, and its answer is read."""

from __future__ import annotations

import os
import socket
import subprocess
import time

import psutil
import pytest

from moorage.survey.nvidia import nvidia_accelerators
from moorage.survey.probe import SCRIPT, STORE, read_probe
from moorage.units import MIB

HEADING = "| NVIDIA-SMI 570.86.15   Driver Version: 570.86.15   CUDA Version: 12.8     |"
LISTED = """\
0, GPU-aaaa, NVIDIA H200, 143771, 140000, 570.86.15
1, GPU-bbbb, NVIDIA H200, 143771, 143000, 570.86.15
"""


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
    assert facts.clock == pytest.approx(time.time(), abs=60)
    disk = os.statvfs("/")
    assert facts.disk_free == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.2)


def test_what_nvidia_smi_lists() -> None:
    first, second = nvidia_accelerators(LISTED, HEADING)
    assert (first.index, first.uuid, first.name) == (0, "GPU-aaaa", "NVIDIA H200")
    assert (first.memory_total, first.memory_free) == (143771 * MIB, 140000 * MIB)
    assert (first.driver, first.runtime_version) == ("570.86.15", "12.8")
    assert second.memory_free == 143000 * MIB


@pytest.mark.parametrize(
    "listed",
    [
        "",
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "0, GPU-aaaa, NVIDIA GB10, [N/A], [N/A], 580.95.05",
        "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error",
    ],
)
def test_lines_that_tell_no_memory_are_no_accelerators(listed: str) -> None:
    assert nvidia_accelerators(listed, HEADING) == ()


def test_an_answer_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="exec format error"):
        read_probe("exec format error")
