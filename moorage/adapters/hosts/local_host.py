"""This machine: installed engines, accelerators as their drivers report them, free TCP ports."""

import errno
import importlib
import importlib.metadata
import importlib.util
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import psutil
import pynvml

from moorage.adapters.engines.installations import Installations
from moorage.adapters.files.safe_files import read_whole
from moorage.adapters.system.listeners import tcp_sockets
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Failure
from moorage.engines.base import Engine
from moorage.engines.packages import packages_of
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import Accelerator, Program
from moorage.inventory.survey.facts import Found, is_jetson
from moorage.inventory.survey.nvidia import closed_to_all, groups_of, split_by_mig
from moorage.inventory.survey.probe import VENDOR_SCRIPT, read_vendors
from moorage.inventory.survey.vendors import NVIDIA, silent_trouble, vendors_on
from moorage.spec import EngineName

NEEDED_MODULES = {
    "transformers": ("torch", "uvicorn", "fastapi", "requests"),
    "moorage-llama-server": ("xllamacpp",),
}
"""Modules that an engine's program needs in addition to its own package."""

DEVICES = "import xllamacpp; print(*(one['name'] for one in xllamacpp.get_device_info()))"
"""Prints the devices on which the wheel of llama.cpp computes, such as `CUDA0` and `CPU`."""

PROBE_SECONDS = 20
TOOLKIT_CONFIGS = (
    Path("/etc/nvidia-container-runtime/config.toml"),
    Path("/var/snap/docker/current/etc/nvidia-container-runtime/config.toml"),
)
"""Configurations of NVIDIA's container toolkit: the system's own, and that of Docker's snap."""

PCI = Path("/sys/bus/pci/devices")


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
        if not all(map(importlib.util.find_spec, NEEDED_MODULES.get(engine.program, ()))):
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

    If it is `accelerated`, llama.cpp's wheel is asked on which devices it computes.
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

    If a driver's tool hangs, the result has only what NVML reports, and the reason is in
    `troubles`. So are accelerators on the PCI bus that no driver reports.
    """
    nvml, seen = nvidia_accelerators(), vendors_on(pci_bus())
    # The tools are slow, and where NVIDIA is the only vendor they add nothing to NVML.
    found = nvml if nvml.accelerators and not seen.keys() - {NVIDIA} else _ask_tools(nvml)
    trouble = silent_trouble(seen, found)
    return found.with_trouble(trouble) if trouble else found


def pci_bus() -> str:
    """Class and vendor of each device on the PCI bus, as `vendors_on` takes them."""
    lines = []
    for device in sorted(PCI.glob("*")):
        with suppress(OSError):
            kind, vendor = ((device / name).read_text().strip() for name in ("class", "vendor"))
            lines.append(f"{kind} {vendor}")
    return "\n".join(lines)


def _ask_tools(nvml: Found) -> Found:
    """What the vendors' tools report; of NVIDIA what NVML reports, if it reports any."""
    try:
        done = subprocess.run(
            ["sh", "-c", f"NVML={'known' if nvml.accelerators else ''}\n{VENDOR_SCRIPT}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return nvml.with_trouble(f"the accelerators did not answer: {error}")
    memory = psutil.virtual_memory()
    answer = done.stdout.decode(errors="replace")
    return read_vendors(answer, (memory.total, memory.available), nvml)


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
        usable = tuple(item for item in seen if isinstance(item, Accelerator))
        links = groups_of(_linked_pairs([item.index for item in usable]))
    finally:
        pynvml.nvmlShutdown()
    troubles = tuple(item for item in seen if isinstance(item, str))
    return Found(accelerators=usable, troubles=troubles, links=links)


def _linked_pairs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of GPUs that NVLink joins, directly or through a switch."""
    for pair in combinations(indexes, 2):
        with suppress(pynvml.NVMLError):
            one, other = map(pynvml.nvmlDeviceGetHandleByIndex, pair)
            nvlink = pynvml.NVML_P2P_CAPS_INDEX_NVLINK
            if pynvml.nvmlDeviceGetP2PStatus(one, other, nvlink) == pynvml.NVML_P2P_STATUS_OK:
                yield pair


def _describe(index: int, driver: str, cuda: int) -> Accelerator | str:
    """One GPU, or the reason why it is unusable, such as that it fell off the bus."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        total, free = _memory(handle)
        name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
    except pynvml.NVMLError as error:
        return f"GPU {index} cannot be used: {error}"
    with suppress(pynvml.NVMLError):  # most GPUs do not support MIG
        if pynvml.nvmlDeviceGetMigMode(handle)[0]:
            return split_by_mig(index, name)
    mode = pynvml.NVML_COMPUTEMODE_DEFAULT
    with suppress(pynvml.NVMLError):
        mode = pynvml.nvmlDeviceGetComputeMode(handle)
    if mode == pynvml.NVML_COMPUTEMODE_PROHIBITED:
        return closed_to_all(index, name)
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
        exclusive=mode != pynvml.NVML_COMPUTEMODE_DEFAULT,
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


def refuses_device_requests(kernel: str) -> bool:
    """Whether NVIDIA's container toolkit here is in a mode that takes no device requests.

    Its mode `auto` means `csv` on a Jetson, and elsewhere one that takes them.
    """
    modes = map(_toolkit_mode, TOOLKIT_CONFIGS)
    return is_jetson(kernel) or any(mode in ("cdi", "csv") for mode in modes)


def _toolkit_mode(path: Path) -> str:
    """The mode in a configuration of the toolkit; empty = it states none that can be read."""
    with suppress(OSError, ValueError, Failure, LookupError, TypeError):
        stated = tomllib.loads(read_whole(path, 2**16).decode())
        return str(stated["nvidia-container-runtime"]["mode"])
    return ""


def ports_in_use(address: str, low: int, high: int) -> set[int]:
    """Ports with a listener, and ports from `low` to `high` that are bound at an address.

    A server that starts binds its port before it listens. A port with only closed connections
    is free: Linux keeps these connections for a minute (TIME_WAIT), but servers can bind the port
    because they set SO_REUSEADDR.
    """
    listening, lingering = set[int](), set[int]()
    for one in tcp_sockets():
        (listening if one.listens else lingering).add(one.port)
    for port in range(low, high + 1):
        if not _can_bind(address, port, again=port in lingering):
            listening.add(port)
    return listening


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
