"""What a seat gives its container whatever the engine: devices, directories, visibility."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.engines.command import filled
from moorage.engines.request import LaunchRequest
from moorage.launch import Flag, Mount, Variable
from moorage.models.source import ModelFile
from moorage.values import Origin

VISIBILITY = {
    "cuda": ("CUDA_VISIBLE_DEVICES", ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")),
    "rocm": ("HIP_VISIBLE_DEVICES", None),
}
"""By accelerator type: the variable that names a process's devices, and how they are counted."""


def visibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """A container is given its devices; a process sees all, so it is told which are its own."""
    seat = request.seat
    if request.in_container or seat.accelerator_type not in VISIBILITY:
        return ()
    name, order = VISIBILITY[seat.accelerator_type]
    pairs = [(name, ",".join(map(str, seat.accelerators)), "the accelerators that were claimed")]
    if order:
        pairs.append((*order, "counts them as the driver does"))
    return tuple(
        Variable(name=name, value=value, origin=Origin.DERIVED, reason=reason)
        for name, value, reason in pairs
    )


def compatibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """NVIDIA's hook refuses an image whose CUDA is newer than the driver's in the minor version."""
    image = request.image
    if not image or not image.newer_runtime or request.seat.accelerator_type != "cuda":
        return ()
    reason = "the image's CUDA is newer than the driver's; they are of the same major version"
    return (
        Variable(name="NVIDIA_DISABLE_REQUIRE", value="1", origin=Origin.DERIVED, reason=reason),
    )


def own_command(request: LaunchRequest) -> Flag:
    """The command line that the user wrote, its placeholders filled in."""
    seat = request.seat
    values = {
        "model_path": request.engine_model_path,
        "model_name": request.spec.name,
        "host": request.listen_address,
        "host_ip": request.host.bind,
        "port": str(seat.port),
        "accelerator_count": str(len(seat.accelerators)),
        "accelerator_ids": ",".join(map(str, seat.accelerators)),
    }
    tokens = filled(request.spec.engine.command or (), values, request.spec.engine.env)
    return Flag(tokens=tokens, origin=Origin.USER, reason="engine.command")


def mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """The model's directory; file by file where links lead out of it, as in the hub's cache."""
    if not request.in_container:
        return ()
    return mounts_of(request.model_path, request.files, request.engine_model_path)


def mounts_of(source: str, files: Sequence[ModelFile], target: str) -> tuple[Mount, ...]:
    """A directory, read-only; file by file where links lead out of it."""
    if not any(file.target for file in files):
        return (Mount(source=source, target=target),)
    return tuple(
        Mount(source=file.target or f"{source}/{file.name}", target=f"{target}/{file.name}")
        for file in files
    )


def devices(request: LaunchRequest) -> tuple[str, ...]:
    """Identifiers of the seat's accelerators: UUIDs where the host tells them."""
    by_index = {item.index: item for item in request.host.accelerators}
    return tuple(by_index[index].uuid or str(index) for index in request.seat.accelerators)
