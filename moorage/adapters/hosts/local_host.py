"""This machine: installed engines, accelerators as their drivers report them, free TCP ports."""

import errno
import importlib
import importlib.metadata
import importlib.util
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pynvml

from moorage.adapters.engines.installations import Installations
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from moorage.engines.base import Engine
from moorage.engines.packages import packages_of
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import Accelerator, Program
from moorage.inventory.survey.facts import Found
from moorage.inventory.survey.nvidia import split_by_mig
from moorage.inventory.survey.probe import LISTENING, VENDOR_SCRIPT, read_vendors
from moorage.spec import EngineName

NEEDED_MODULES = {
    "transformers": ("torch", "uvicorn", "fastapi", "requests"),
    "moorage-llama-server": ("xllamacpp",),
}
"""Modules that an engine's program needs in addition to its own package."""

DEVICES = "import xllamacpp; print(*(one['name'] for one in xllamacpp.get_device_info()))"
"""Prints the devices on which the wheel of llama.cpp computes, such as `CUDA0` and `CPU`."""

PROBE_SECONDS = 20
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def installed_program(engine: Engine) -> Program | None:
    """The program of an engine on this machine; None = not installed.

    The search order: an installation by `moorage engines install`, the folder of this Python, and
    `PATH`.
    """
    if not engine.program:
        return None
    if installed := Installations(Settings().engines).program(engine.name):
        return installed
    own = Path(sys.executable).parent / engine.program
    if own.exists():
        needed = NEEDED_MODULES.get(engine.program, ())
        if not all(importlib.util.find_spec(module) for module in needed):
            return None
        try:
            version = importlib.metadata.version(packages_of(engine.name).name)
        except (importlib.metadata.PackageNotFoundError, Failure):
            # The program itself also needs this metadata (vLLM 0.32, `entrypoints/cli/main.py`).
            return None
        return Program(engine=engine.name, path=str(own), version=version)
    elsewhere = shutil.which(engine.program)
    return Program(engine=engine.name, path=elsewhere, version="") if elsewhere else None


def installed_programs(*, accelerated: bool = False) -> tuple[Program, ...]:
    """All engines that are installed on this machine.

    Args:
        accelerated: Whether it has accelerators, so that llama.cpp's wheel is asked for its own.
    """
    found = filter(None, map(installed_program, ENGINES.values()))
    return tuple(
        one.model_copy(update={"computes_on": _computes_on(one)})
        if accelerated and one.engine == EngineName.LLAMA_CPP
        else one
        for one in found
    )


def _computes_on(one: Program) -> tuple[str, ...]:
    try:
        return _device_types(one.path, one.version)
    except (OSError, subprocess.SubprocessError):
        return ()  # not kept: the next survey asks again


@cache
def _device_types(program: str, version: str) -> tuple[str, ...]:  # noqa: ARG001
    """Types of the devices on which a wheel of llama.cpp computes here.

    A process of its own asks, which frees the accelerators again.
    """
    done = subprocess.run(
        [str(Path(program).with_name("python")), "-I", "-c", DEVICES],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PROBE_SECONDS,
        check=True,
    )
    names = done.stdout.decode(errors="replace").lower().split()
    return tuple(sorted({name.rstrip("0123456789") for name in names}))


def interface_with(bind: str) -> str:
    """The network interface of this machine with an address; empty = none has it."""
    addresses = psutil.net_if_addrs().items()
    return next((str(name) for name, own in addresses if bind in [one.address for one in own]), "")


def local_accelerators() -> Found:
    """The accelerators of this machine: NVIDIA's through NVML, others through vendors' tools.

    If a driver's tool hangs, the result has no accelerators, and the reason is in `troubles`.
    """
    found = nvidia_accelerators()
    if found.accelerators:
        return found
    try:
        done = subprocess.run(
            ["sh", "-c", VENDOR_SCRIPT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(troubles=(f"the accelerators did not answer: {error}",))
    memory = psutil.virtual_memory()
    return read_vendors(done.stdout.decode(errors="replace"), (memory.total, memory.available))


def nvidia_accelerators() -> Found:
    """The NVIDIA GPUs that NVML reports; none when there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return Found()
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        cuda = pynvml.nvmlSystemGetCudaDriverVersion()
        seen = [_describe(index, driver, cuda) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()
    return Found(
        accelerators=tuple(item for item in seen if isinstance(item, Accelerator)),
        troubles=tuple(item for item in seen if isinstance(item, str)),
    )


def _describe(index: int, driver: str, cuda: int) -> Accelerator | str:
    """One GPU, or the reason why it is unusable: it fell off the bus, or MIG splits it."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        total, free = _memory(handle)
        name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
    except pynvml.NVMLError as error:
        return f"GPU {index} cannot be used: {error}"
    with suppress(pynvml.NVMLError):  # most GPUs do not support MIG
        if pynvml.nvmlDeviceGetMigMode(handle)[0]:
            return split_by_mig(index, name)
    family = ""
    with suppress(pynvml.NVMLError):
        family = "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    return Accelerator(
        type="cuda",
        index=index,
        name=name,
        uuid=uuid,
        memory_total=total,
        memory_free=free,
        driver=driver,
        runtime_version=f"{cuda // 1000}.{cuda % 1000 // 10}",
        family=family,
    )


def _memory(handle: Any) -> tuple[int, int]:
    """Total and free bytes of a GPU for CUDA, without the driver's own reserve.

    With drivers before 510 the total includes the reserve, because they do not report it.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        return int(memory.total - memory.reserved), int(memory.free)
    except pynvml.NVMLError:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return int(memory.total), int(memory.free)


def ports_in_use(address: str, low: int, high: int) -> set[int]:
    """Ports with a listener, and ports from `low` to `high` that are bound at an address.

    A server that starts binds its port before it listens. A port with only closed connections
    is free: Linux keeps these connections for a minute (TIME_WAIT), but servers can bind the port
    because they set SO_REUSEADDR.
    """
    listening, lingering = set[int](), set[int]()
    for port, listens in _connections():
        (listening if listens else lingering).add(port)
    for port in range(low, high + 1):
        if not _can_bind(address, port, again=port in lingering):
            listening.add(port)
    return listening


def _connections() -> Iterator[tuple[int, bool]]:
    """The local port of each connection, and whether it is a listener.

    This reads the kernel's tables directly. psutil would also read the files of every process to
    find the owners: with many engines that takes longer than the rest of a survey.
    """
    for table in filter(Path.exists, TABLES):  # not every kernel has IPv6
        for row in table.read_text().splitlines()[1:]:
            # Column 2 is the local address with its hexadecimal port, column 4 the state.
            columns = row.split()
            yield int(columns[1].rpartition(":")[2], 16), columns[3] == LISTENING


def _can_bind(address: str, port: int, *, again: bool) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        if again:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
