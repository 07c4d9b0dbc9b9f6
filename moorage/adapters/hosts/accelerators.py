"""Accelerators of this machine, as their drivers report them."""

from __future__ import annotations

import subprocess
from types import ModuleType
from typing import Any

import psutil
import pynvml

from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found
from moorage.inventory.survey.nvidia import split_by_mig
from moorage.inventory.survey.probe import VENDOR_SCRIPT, read_vendors

PROBE_SECONDS = 20


def found_here() -> Found:
    """The accelerators of this machine: NVIDIA's by NVML, which takes no process; else by tools.

    A driver's tool that hangs leaves a machine without accelerators, with the reason.
    """
    found = nvidia_here()
    if found.accelerators:
        return found
    try:
        said = subprocess.run(
            ["sh", "-c", VENDOR_SCRIPT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(troubles=(f"the accelerators could not be asked: {error}",))
    memory = psutil.virtual_memory()
    return read_vendors(said.stdout.decode(errors="replace"), (memory.total, memory.available))


def nvidia_here(nvml: ModuleType | Any = pynvml) -> Found:
    """The NVIDIA GPUs that NVML reports; none when there is no driver.

    Args:
        nvml: The module of nvidia-ml-py, or a recording of its answers.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return Found()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        cuda = nvml.nvmlSystemGetCudaDriverVersion()
        count = nvml.nvmlDeviceGetCount()
        seen = [_describe(nvml, index, driver, cuda) for index in range(count)]
    finally:
        nvml.nvmlShutdown()
    return Found(
        accelerators=tuple(item for item in seen if isinstance(item, Accelerator)),
        troubles=tuple(item for item in seen if isinstance(item, str)),
    )


def _describe(nvml: Any, index: int, driver: str, cuda: int) -> Accelerator | str:
    """One GPU, or why it cannot be used: it may have fallen off the bus, or be split by MIG."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        name, uuid = nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError as error:
        return f"GPU {index} cannot be used: {error}"
    if _is_split(nvml, handle):
        return split_by_mig(index, _text(name))
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


def _is_split(nvml: Any, handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        return False  # most GPUs know nothing of it


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
