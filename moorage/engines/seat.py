"""Settings of a seat's container for any engine: isolation, devices, folders, variables.

The script `prepare.sh` does the work that must precede the engine: it replaces the entrypoint and
finally becomes the engine's process.
"""

import re
from collections.abc import Iterator, Sequence

from moorage.common.values import Origin
from moorage.engines.flags import Variable, variable
from moorage.engines.launch import Isolation, Mount, Preparation
from moorage.engines.request import LaunchRequest
from moorage.images.catalogue import Fit, fit
from moorage.inventory.devices import CUDA, DeviceKind, device_kind_on, device_nodes, sees_others
from moorage.inventory.snapshot import Accelerator
from moorage.models.source import ModelFile
from moorage.placement.placement import CPU
from moorage.placement.runtime import hardware_of_seat
from moorage.spec import IpcMode, NetworkMode

TAGGED = re.compile(r"cuda(\d+\.\d+)")
"""The CUDA version in an image's tag."""


def isolation(request: LaunchRequest) -> Isolation:
    """The isolation of a seat's container; the default for a process."""
    if not request.in_container:
        return Isolation()
    settings, kind = request.spec.engine.container, device_kind_of(request)
    return Isolation(
        user=":".join(str(one) for one in (settings.user, settings.group) if one is not None),
        groups=tuple(dict.fromkeys((*kind.groups, *settings.groups))),
        ulimits=settings.ulimits,
        ipc=settings.ipc,
        network=NetworkMode.HOST if request.spans_hosts else settings.network,
        restart=settings.restart,
        capabilities=tuple(dict.fromkeys((*kind.capabilities, *settings.capabilities)))
        if not settings.privileged
        else (),
        privileged=settings.privileged,
        nodes=device_nodes(kind, claimed_accelerators(request)),
        runtime=kind.runtime,
    )


def device_kind_of(request: LaunchRequest) -> DeviceKind:
    """The device kind of the seat's accelerators; the default for a seat on CPU."""
    kind = request.seat.accelerator_type
    return DeviceKind() if kind == CPU else device_kind_on(request.host, kind)


def claimed_accelerators(request: LaunchRequest) -> tuple[Accelerator, ...]:
    """The seat's accelerators, in the seat's order."""
    own = {(item.type, item.index): item for item in request.host.accelerators}
    return tuple(own[request.seat.accelerator_type, index] for index in request.seat.accelerators)


def sees_more_than_claimed(request: LaunchRequest) -> bool:
    """Whether the engine could use accelerators beyond its claim."""
    if not request.in_container or request.spec.engine.container.privileged:
        return True
    return _sees_all_gpus(request) or sees_others(
        device_kind_of(request), claimed_accelerators(request)
    )


def _sees_all_gpus(request: LaunchRequest) -> bool:
    return request.seat.accelerator_type == CUDA and request.host.exposes_all_gpus


def shm_bytes(request: LaunchRequest) -> int:
    """Size of the container's own shared memory; 0 = no own shared memory.

    It is at most the RAM limit, because shared memory counts against that limit.
    """
    engine, limit = request.spec.engine, memory_bytes(request)
    if not request.in_container or engine.container.ipc == IpcMode.HOST:
        return 0
    return min(int(engine.shm), limit) if limit else int(engine.shm)


def memory_bytes(request: LaunchRequest) -> int:
    """Limit of RAM: the claim on CPU, else the spec's limit; 0 = none."""
    if request.seat.accelerator_type == CPU:
        return request.seat.ram_bytes
    return int(request.spec.engine.container.memory or 0)


def cores(request: LaunchRequest) -> int:
    """Limit of processor cores: the claim, else the spec's limit; 0 = none."""
    limit = request.spec.engine.container.cores if request.in_container else None
    return request.seat.cores or limit or 0


def isolation_warnings(request: LaunchRequest) -> Iterator[str]:
    """Warnings about a container's rights and limits."""
    settings, seat = request.spec.engine.container, request.seat
    if not request.in_container:
        return
    if settings.privileged:
        yield (
            "PRIVILEGED: engine.container.privileged gives the engine every right and every device"
            f" of {request.host.name}"
        )
    if settings.memory and seat.accelerator_type == CPU:
        yield "engine.container.memory: on CPU the claim is the limit; set `placement.ram`"
    if settings.cores and seat.cores:
        yield f"engine.container.cores: {seat.cores} cores were claimed, and they are the limit"
    if not settings.privileged and sees_others(
        device_kind_of(request), claimed_accelerators(request)
    ):
        yield (
            f"{request.host.name}: the container gets /dev/dri as a whole; write down `node` of"
            f" each {seat.accelerator_type} accelerator in the fleet file to narrow it"
        )
    if _sees_all_gpus(request) and len(request.host.accelerators) > len(seat.accelerators):
        yield (
            f"{request.host.name}: under WSL every container sees all GPUs; a variable limits the"
            " engine to its own"
        )


def preparation(request: LaunchRequest) -> Preparation | None:
    """The preparation of a seat's container; None = nothing to do, so no script."""
    if not request.in_container:
        return None
    spec = request.spec.engine
    found = Preparation(
        packages=tuple(name.replace(" ", "") for name in spec.packages),
        without_cuda_compat=runs_by_minor_version(request) and not spec.keep_cuda_compat,
    )
    return found if found != Preparation() else None


def runs_by_minor_version(request: LaunchRequest) -> bool:
    """Whether the image's CUDA is newer than the driver's within the same major version."""
    image, seat = request.image, request.seat
    if image is None or seat.accelerator_type != CUDA:
        return False
    host = hardware_of_seat(request.host, seat.accelerator_type, seat.accelerators).chip.runtime
    tag = TAGGED.search(image.reference.rpartition("/")[2].partition(":")[2])
    built = image.runtime or (tag[1] if tag else "")
    if not built or not host:
        return image.newer_runtime
    # The image was chosen for the oldest driver of the release.
    return fit(built, host) is Fit.SAME_MAJOR


def visibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """Variables that limit an engine to its claimed accelerators if it could use others."""
    kind, seat = device_kind_of(request), request.seat
    indexes = ",".join(map(str, seat.accelerators))
    pairs: list[tuple[str, str, str]] = []
    if kind.chosen_by and request.in_container:
        pairs.append((kind.chosen_by, indexes, "the container runtime hands out the claimed ones"))
    if kind.visibility and seat.accelerators and sees_more_than_claimed(request):
        pairs.append((kind.visibility, indexes, "the accelerators that were claimed"))
        if kind.order:
            pairs.append((*kind.order, "counts them as the driver does"))
    return tuple(variable(name, value, reason, Origin.DERIVED) for name, value, reason in pairs)


def compatibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """The variable that stops NVIDIA's hook from refusing images of a newer minor CUDA version."""
    if not runs_by_minor_version(request):
        return ()
    reason = "the image's CUDA is newer than the driver's; they are of the same major version"
    return (variable("NVIDIA_DISABLE_REQUIRE", "1", reason, Origin.DERIVED),)


def mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """The model's directory and the files of the host's driver, all read-only.

    Files are mounted one by one if links lead out of the directory, as in the hub's cache.
    """
    if not request.in_container:
        return ()
    driver = (Mount(source=path, target=path) for path in device_kind_of(request).mounts)
    return (*mounts_of(request.model.path, request.model.files, request.engine_model_path), *driver)


def mounts_of(source: str, files: Sequence[ModelFile], target: str) -> tuple[Mount, ...]:
    """Read-only mounts of a directory; one per file if links lead out of it."""
    if not any(file.target for file in files):
        return (Mount(source=source, target=target),)
    return tuple(
        Mount(source=file.target or f"{source}/{file.name}", target=f"{target}/{file.name}")
        for file in files
    )


def devices(request: LaunchRequest) -> tuple[str, ...]:
    """Identifiers of the seat's accelerators: UUIDs if known, else indexes."""
    return tuple(item.identifier for item in claimed_accelerators(request))
