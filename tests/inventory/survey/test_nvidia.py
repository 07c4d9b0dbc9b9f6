"""What `nvidia-smi` tells: whole GPUs, chips that share the host's RAM, faults, and NVLink."""

from __future__ import annotations

import pytest

from moorage.common.units import GIB, MIB
from moorage.inventory.survey.facts import Found
from moorage.inventory.survey.nvidia import linked_groups, nvidia_found
from tests.inventory.survey.samples import sample

HEADING = "| NVIDIA-SMI 570.86.15   Driver Version: 570.86.15   CUDA Version: 12.8     |"
RAM = (128 * GIB, 100 * GIB)


def found(*listed: str, heading: str = HEADING, topology: str = "") -> Found:
    return nvidia_found("\n".join(listed), heading, topology, RAM)


def test_whole_gpus() -> None:
    seen = found(
        "0, GPU-aaaa, NVIDIA H200, 143771, 140000, 3771, 570.86.15, Disabled",
        "1, GPU-bbbb, NVIDIA L4, 23034, 22000, 1034, 570.86.15, [N/A]",
    )
    first, second = seen.accelerators
    assert (first.type, first.index, first.uuid, first.name) == (
        "cuda",
        0,
        "GPU-aaaa",
        "NVIDIA H200",
    )
    assert (first.memory_total, first.memory_free) == (143771 * MIB, 140000 * MIB)
    assert (first.driver, first.runtime_version) == ("570.86.15", "12.8")
    assert second.memory_free == 22000 * MIB
    assert (seen.troubles, seen.unified_memory) == ((), False)


def test_what_the_driver_reserves_is_no_memory_of_a_gpu() -> None:
    line = "0, GPU-de5c, NVIDIA H100 80GB HBM3, 81559, 81079, 0, 580.159.04, Disabled"
    seen = found(line, topology=sample("topo-h100-alone.txt"))
    assert (seen.accelerators[0].memory_total, seen.links) == (81079 * MIB, ())


@pytest.mark.parametrize(
    ("heading", "runtime"),
    [
        (sample("nvidia-smi-a100-heading.txt"), "11.8"),
        (sample("nvidia-smi-orin-heading.txt"), "12.6"),
        ("| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3  |", "13.3"),
        ("NVIDIA-SMI has failed", ""),
    ],
)
def test_the_newest_cuda_is_in_the_heading(heading: str, runtime: str) -> None:
    line = "0, GPU-a, NVIDIA A100 80GB PCIe, 81920, 81000, 920, 520.61.05, Disabled"
    assert found(line, heading=heading).accelerators[0].runtime_version == runtime


@pytest.mark.parametrize(
    ("answer", "families"),
    [
        ("0, 9.0\n1, 12.1\n", ["9.0", "12.1"]),
        ("1, 8.9\n", ["", "8.9"]),
        ("0, [N/A]\n1, 7.0", ["", "7.0"]),
        ('Field "compute_cap" is not a valid field to query.\n', ["", ""]),
        ("", ["", ""]),
    ],
)
def test_the_compute_capability_is_known_where_the_driver_reports_it(
    answer: str, families: list[str]
) -> None:
    listed = "\n".join(
        f"{index}, GPU-{index}, NVIDIA L4, 23034, 22000, 1034, 470.57, [N/A]" for index in (0, 1)
    )
    seen = nvidia_found(listed, HEADING, "", RAM, answer)
    assert [one.family for one in seen.accelerators] == families


@pytest.mark.parametrize(
    "line",
    [
        "0, GPU-aaaa, NVIDIA GB10, [N/A], [N/A], [N/A], 580.126.09, [N/A]",
        "0, GPU-aaaa, Orin (nvgpu), [N/A], [N/A], [N/A], 540.4.0, [N/A]",
        "0, GPU-aaaa, Thor, [Not Supported], [Not Supported], [Not Supported], 580.00, [N/A]",
    ],
)
def test_chips_that_share_the_hosts_ram_have_as_much_memory(line: str) -> None:
    seen = found(line)
    assert seen.unified_memory
    assert seen.troubles == ()
    assert (seen.accelerators[0].memory_total, seen.accelerators[0].memory_free) == RAM


@pytest.mark.parametrize(
    ("mode", "exclusive"),
    [
        (", Default", False),
        (", Exclusive_Process", True),
        (", Exclusive_Thread", True),
        (", [N/A]", False),
        ("", False),
    ],
)
def test_a_gpu_may_let_in_one_process_at_a_time(mode: str, exclusive: bool) -> None:
    line = "0, GPU-a, NVIDIA H100, 81559, 81000, 559, 570.86.15, Disabled"
    (gpu,) = found(line + mode).accelerators
    assert gpu.exclusive == exclusive


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "1, GPU-b, NVIDIA H100, 81559, 81000, 559, 570.86.15, Disabled, Prohibited",
            "GPU 1 (NVIDIA H100) lets in no process",
        ),
        (
            "1, GPU-b, NVIDIA A100 80GB PCIe, 81920, 81000, 920, 520.61.05, Enabled",
            "split by MIG",
        ),
        (
            "1, GPU-b, NVIDIA H100, [N/A], [N/A], [N/A], 570.86.15, Disabled",
            "does not tell its memory",
        ),
        (
            "1, GPU-b, H100, [Unknown Error], [Unknown Error], [Unknown Error], 570.86, Disabled",
            "does not tell its memory",
        ),
        (
            "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
            "GPU 0000:0B:00.0",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "couldn't communicate",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch",
            "Driver/library version mismatch",
        ),
    ],
)
def test_a_gpu_that_cannot_be_used_is_a_trouble_and_hides_no_other(
    line: str, expected: str
) -> None:
    seen = found("0, GPU-a, NVIDIA H100, 81559, 81000, 559, 570.86.15, Disabled", line)
    assert [item.uuid for item in seen.accelerators] == ["GPU-a"]
    assert len(seen.troubles) == 1
    assert expected in seen.troubles[0]


@pytest.mark.parametrize("listed", ["", "No devices were found"])
def test_a_host_without_gpus_has_no_trouble(listed: str) -> None:
    assert found(listed) == Found()


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("topo-h100.txt", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("topo-h100-nics.txt", ((0, 1, 2, 3),)),
        ("topo-4090.txt", ()),
        ("topo-b200-one-apart.txt", ((0, 1, 3, 4),)),
    ],
)
def test_groups_that_nvlink_joins(name: str, groups: tuple[tuple[int, ...], ...]) -> None:
    assert linked_groups(sample(name)) == groups
    assert found(topology=sample(name)).links == groups


@pytest.mark.parametrize("matrix", ["", "Failed to get the topology", "\tGPU0\nGPU0\t X \n"])
def test_no_matrix_joins_nothing(matrix: str) -> None:
    assert linked_groups(matrix) == ()


def test_an_underlined_heading_is_read() -> None:
    matrix = "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n"
    assert linked_groups(matrix) == ((0, 1),)
