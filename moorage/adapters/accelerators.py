"""Accelerators of this machine, as their drivers report them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pynvml

from moorage.placement.snapshot import Accelerator


def nvidia_accelerators(nvml: ModuleType | Any = pynvml) -> tuple[Accelerator, ...]:
    """The NVIDIA GPUs that NVML reports; none when there is no driver.

    Args:
        nvml: The module of nvidia-ml-py, or a recording of its answers.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        cuda = nvml.nvmlSystemGetCudaDriverVersion()
        count = nvml.nvmlDeviceGetCount()
        found = [_describe(nvml, index, driver, cuda) for index in range(count)]
        return tuple(item for item in found if item)
    finally:
        nvml.nvmlShutdown()


def _describe(nvml: Any, index: int, driver: str, cuda: int) -> Accelerator | None:
    """One GPU; None when it has fallen off the bus, which says nothing about the others."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        name, uuid = nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError:
        return None
    return Accelerator(
        type="cuda",
        index=index,
        name=_text(name),
        uuid=_text(uuid),
        memory_total=int(memory.total),
        memory_free=int(memory.free),
        driver=driver,
        runtime_version=f"{cuda // 1000}.{cuda % 1000 // 10}",
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
