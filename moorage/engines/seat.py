"""What a seat gives its container whatever the engine: devices, directories, visibility."""

from __future__ import annotations

from moorage.engines.command import filled
from moorage.engines.preparation import WITHOUT_CHECK, runs_by_minor_version
from moorage.engines.request import LaunchRequest
from moorage.launch import Flag, Mount, Variable
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
    if not runs_by_minor_version(request):
        return ()
    reason = "the image's CUDA is newer than the driver's; they are of the same major version"
    return tuple(
        Variable(name=name, value=value, origin=Origin.DERIVED, reason=reason)
        for name, value in WITHOUT_CHECK.items()
    )


def own_command(request: LaunchRequest) -> Flag:
    """The command line that the user wrote, its placeholders filled in."""
    spec = request.spec.engine
    tokens = filled(spec.command or (), placeholders(request), spec.env)
    return Flag(tokens=tokens, origin=Origin.USER, reason="engine.command", written=True)


def placeholders(request: LaunchRequest) -> dict[str, str]:
    """What a command line can name in `{{...}}`."""
    seat = request.seat
    return {
        "model_path": request.engine_model_path,
        "model_name": request.spec.name,
        "host": request.listen_address,
        "host_ip": request.host.bind,
        "port": str(seat.port),
        "accelerator_count": str(len(seat.accelerators)),
        "accelerator_ids": ",".join(map(str, seat.accelerators)),
    }


def mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """The model's directory; file by file where links lead out of it, as in the hub's cache."""
    if not request.in_container:
        return ()
    source, target = request.model_path, request.engine_model_path
    if not any(file.target for file in request.files):
        return (Mount(source=source, target=target),)
    return tuple(
        Mount(source=file.target or f"{source}/{file.name}", target=f"{target}/{file.name}")
        for file in request.files
    )


def devices(request: LaunchRequest) -> tuple[str, ...]:
    """Identifiers of the seat's accelerators: UUIDs where the host tells them."""
    by_index = {item.index: item for item in request.host.accelerators}
    return tuple(by_index[index].uuid or str(index) for index in request.seat.accelerators)
