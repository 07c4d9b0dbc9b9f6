from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moorage.adapters.accelerators import nvidia_accelerators
from moorage.placement.snapshot import Accelerator
from moorage.units import MIB


class Recording:
    """NVML's answers, as nvidia-ml-py gives them on a host with these GPUs."""

    class NVMLError(Exception):
        """As in nvidia-ml-py."""

    def __init__(
        self, *gpus: dict[str, Any], driver: Any = "570.124.06", init: bool = True
    ) -> None:
        self.gpus, self.driver, self.init = gpus, driver, init
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

    def nvmlDeviceGetMemoryInfo(self, handle: dict[str, Any]) -> SimpleNamespace:
        if "memory" not in handle:
            raise self.NVMLError("GPU is lost")
        total, free = handle["memory"]
        return SimpleNamespace(total=total * MIB, free=free * MIB, used=(total - free) * MIB)


H200 = {"name": "NVIDIA H200", "uuid": "GPU-7a1c", "memory": (143771, 143164)}
L4 = {"name": "NVIDIA L4", "uuid": "GPU-90fe", "memory": (23034, 512)}


def test_gpus_are_described_as_their_driver_reports_them() -> None:
    nvml = Recording(H200, L4)
    assert nvidia_accelerators(nvml) == (
        Accelerator(
            type="cuda",
            index=0,
            name="NVIDIA H200",
            uuid="GPU-7a1c",
            memory_total=143771 * MIB,
            memory_free=143164 * MIB,
            driver="570.124.06",
            runtime_version="12.8",
        ),
        Accelerator(
            type="cuda",
            index=1,
            name="NVIDIA L4",
            uuid="GPU-90fe",
            memory_total=23034 * MIB,
            memory_free=512 * MIB,
            driver="570.124.06",
            runtime_version="12.8",
        ),
    )
    assert not nvml.open


def test_older_bindings_answer_in_bytes() -> None:
    old = {**L4, "name": b"NVIDIA L4", "uuid": b"GPU-90fe"}
    new = nvidia_accelerators(Recording(L4))
    assert nvidia_accelerators(Recording(old, driver=b"570.124.06")) == new


@pytest.mark.parametrize("nvml", [Recording(init=False), Recording()], ids=["no driver", "no GPU"])
def test_without_a_driver_or_a_gpu_there_are_none(nvml: Recording) -> None:
    assert nvidia_accelerators(nvml) == ()
    assert not nvml.open


def test_a_gpu_that_is_lost_does_not_hide_the_others() -> None:
    lost = {"name": "NVIDIA L4", "uuid": "GPU-dead"}
    nvml = Recording(lost, H200)
    assert [(item.index, item.name) for item in nvidia_accelerators(nvml)] == [(1, "NVIDIA H200")]
    assert not nvml.open
