"""Accelerator types as data: how a container or a process gets its claimed devices.

The table holds verified facts only; a type that no container can use has a `refusal`.
Sources, by type: AMD's pages on ROCm in Docker; the quick start of vllm-ascend; vLLM's own images
and platforms; Intel's pages on Gaudi; the device lists of GPUStack's runtime (`deployer/cdi/`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.inventory.snapshot import Accelerator, HostSnapshot

CUDA = "cuda"

RENDER_NODES = "/dev/dri"
"""Directory with the nodes of all graphics devices; Docker passes on every device in it."""

NVIDIA_RUNTIME = "nvidia"
"""Name under which NVIDIA's container toolkit registers its runtime with Docker."""

NVIDIA_CHOSEN_BY = "NVIDIA_VISIBLE_DEVICES"
"""Variable that names the devices to that runtime, by index or UUID."""


class DeviceKind(Value):
    """How containers and processes get accelerators of one type.

    Attributes:
        visibility: Variable that names a process's devices, by index; empty = none is known.
        order: Variable and value that make the indexes follow the driver's order.
        requested: Whether a container requests devices by their identifiers.
        shared: Device nodes that every container of the type needs.
        node: Node of one device, with `{index}`; empty = devices have no nodes of their own.
        renders: Whether each device has a render node, known from the survey (AMD) or the fleet
            file.
        mounts: Files of the host's driver, mounted read-only at the same path.
        runtime: Docker runtime that adds the devices; empty = the daemon's default.
        chosen_by: Variable that names the devices to that runtime, by index.
        refusal: Why a container cannot have the devices; empty = it can.
    """

    visibility: str = ""
    order: tuple[str, str] | None = None
    requested: bool = False
    shared: tuple[str, ...] = ()
    node: str = ""
    renders: bool = False
    groups: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    runtime: str = ""
    chosen_by: str = ""
    capabilities: tuple[str, ...] = ()
    refusal: str = ""
    remedy: str = ""


def _driver(product: str, nodes: str) -> str:
    return f"Install and load {product} on the host, so that {nodes} are there."


DEVICES: dict[str, DeviceKind] = {
    CUDA: DeviceKind(
        visibility="CUDA_VISIBLE_DEVICES",
        order=("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        requested=True,
        remedy="Install the NVIDIA container toolkit and restart Docker.",
    ),
    "rocm": DeviceKind(
        visibility="HIP_VISIBLE_DEVICES",
        shared=("/dev/kfd",),
        renders=True,
        groups=("video",),
        remedy=_driver("AMD's driver (amdgpu)", "/dev/kfd and /dev/dri"),
    ),
    "cann": DeviceKind(
        visibility="ASCEND_RT_VISIBLE_DEVICES",
        shared=("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
        node="/dev/davinci{index}",
        mounts=(
            "/usr/local/dcmi",
            "/usr/local/bin/npu-smi",
            "/usr/local/Ascend/driver/lib64",
            "/usr/local/Ascend/driver/version.info",
            "/etc/ascend_install.info",
        ),
        remedy=_driver("the Ascend driver", "/dev/davinci* and /usr/local/Ascend/driver"),
    ),
    "dcu": DeviceKind(
        visibility="HIP_VISIBLE_DEVICES",
        shared=("/dev/kfd", "/dev/mkfd"),
        renders=True,
        groups=("video",),
        mounts=("/opt/hyhal",),
        remedy=_driver("Hygon's driver", "/dev/kfd, /dev/mkfd, /dev/dri and /opt/hyhal"),
    ),
    "maca": DeviceKind(
        visibility="CUDA_VISIBLE_DEVICES",
        shared=("/dev/mxcd",),
        renders=True,
        groups=("video",),
        remedy=_driver("MetaX's driver", "/dev/mxcd and /dev/dri"),
    ),
    "corex": DeviceKind(
        visibility="CUDA_VISIBLE_DEVICES",
        shared=("/dev/itrctl",),
        node="/dev/iluvatar{index}",
        remedy=_driver("Iluvatar's driver", "/dev/itrctl and /dev/iluvatar*"),
    ),
    "hggc": DeviceKind(
        visibility="CUDA_VISIBLE_DEVICES",
        shared=("/dev/alixpu", "/dev/alixpu_ctl"),
        node="/dev/alixpu_ppu{index}",
        remedy=_driver("T-Head's driver", "/dev/alixpu and /dev/alixpu_ppu*"),
    ),
    "xpu": DeviceKind(
        visibility="ZE_AFFINITY_MASK",
        renders=True,
        # oneCCL finds its devices by their PCI address.
        mounts=("/dev/dri/by-path",),
        remedy=_driver("Intel's graphics driver", "the nodes of /dev/dri"),
    ),
    "hpu": DeviceKind(
        runtime="habana",
        chosen_by="HABANA_VISIBLE_DEVICES",
        capabilities=("SYS_NICE",),
        remedy="Install Intel's habana-container-runtime and register it with Docker as `habana`.",
    ),
    "musa": DeviceKind(
        visibility="MUSA_VISIBLE_DEVICES",
        refusal="it is not verified how a container gets single accelerators of musa",
    ),
    "mlu": DeviceKind(
        visibility="MLU_VISIBLE_DEVICES",
        refusal="it is not verified how a container gets accelerators of mlu",
    ),
}
"""By accelerator type, under the names of the fleet and of the image catalogue."""

ORDERS = {kind.order[0]: kind.order[1] for kind in DEVICES.values() if kind.order}
"""Variables of the order in which an engine numbers accelerators, with the order of claims."""

DEVICE_VARIABLES = ORDERS.keys() | {
    NVIDIA_CHOSEN_BY,
    *("ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),  # ROCm reads these, too
    *(name for kind in DEVICES.values() for name in (kind.visibility, kind.chosen_by) if name),
}
"""Variables that decide which accelerators an engine sees, and how it numbers them."""

UNKNOWN = DeviceKind(refusal="nothing is known of accelerators of this type")


def device_kind(accelerator_type: str) -> DeviceKind:
    """The `DeviceKind` of a type; a type that is not in the table is always refused."""
    return DEVICES.get(accelerator_type, UNKNOWN)


def device_kind_on(host: HostSnapshot, accelerator_type: str) -> DeviceKind:
    """The `DeviceKind` of a type on a host, which may refuse device requests."""
    kind = device_kind(accelerator_type)
    if not (kind.requested and host.needs_nvidia_runtime):
        return kind
    # An index has the same meaning in every mode of the toolkit; not every mode knows UUIDs.
    by_runtime = {"runtime": NVIDIA_RUNTIME, "chosen_by": NVIDIA_CHOSEN_BY, "requested": False}
    return kind.model_copy(update=by_runtime)


def process_refusal(accelerator_type: str) -> str:
    """Why a process cannot be limited to its own accelerators of a type; empty = it can."""
    if device_kind(accelerator_type).visibility:
        return ""
    return f"no variable is known that limits a process to its accelerators of {accelerator_type}"


def device_nodes(kind: DeviceKind, accelerators: Sequence[Accelerator]) -> tuple[str, ...]:
    """Device nodes that a container needs for its accelerators; none where a runtime adds them."""
    if kind.node:
        return (*kind.shared, *(kind.node.format(index=item.index) for item in accelerators))
    if not kind.renders:
        return kind.shared
    return (*kind.shared, *(_own_nodes(accelerators) or (RENDER_NODES,)))


def sees_others(kind: DeviceKind, accelerators: Sequence[Accelerator]) -> bool:
    """Whether a container also gets the nodes of accelerators that are not its own."""
    return kind.renders and not _own_nodes(accelerators)


def require_device_requests(version: Mapping[str, Any], host: str) -> None:
    """Raise `ACCELERATOR_RUNTIME_MISSING` for a daemon that would ignore requests for accelerators.

    Podman (4.3 to 5.1 at least) silently ignores `DeviceRequests`:
    https://github.com/podman-container-tools/podman/issues/22645
    """
    if any(one.get("Name") == "Podman Engine" for one in version.get("Components") or ()):
        raise Failure(
            Cause.ACCELERATOR_RUNTIME_MISSING,
            f"Podman on {host} gives no NVIDIA accelerators through its Docker-compatible socket",
            suggestion="Use Docker with NVIDIA's container toolkit on hosts with NVIDIA GPUs.",
        )


def _own_nodes(accelerators: Sequence[Accelerator]) -> tuple[str, ...]:
    nodes = tuple(item.node for item in accelerators)
    return nodes if all(nodes) else ()
