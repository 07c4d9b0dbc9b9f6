"""What a seat gives its container whatever the engine: devices, directories, visibility."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.values import Origin
from moorage.engines.command import filled
from moorage.engines.isolation import claimed, kind_of_seat, sees_more_than_claimed
from moorage.engines.launch import Flag, Mount, Variable
from moorage.engines.preparation import WITHOUT_CHECK, runs_by_minor_version
from moorage.engines.request import LaunchRequest
from moorage.models.source import ModelFile


def visibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """Where more than the claimed accelerators can be seen, the engine is told its own."""
    kind, seat = kind_of_seat(request), request.seat
    indexes = ",".join(map(str, seat.accelerators))
    pairs: list[tuple[str, str, str]] = []
    if kind.chosen_by and request.in_container:
        pairs.append((kind.chosen_by, indexes, "the container runtime hands out the claimed ones"))
    if kind.visibility and seat.accelerators and sees_more_than_claimed(request):
        pairs.append((kind.visibility, indexes, "the accelerators that were claimed"))
        if kind.order:
            pairs.append((*kind.order, "counts them as the driver does"))
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
    """The model's directory, and what the host's driver brings, all read-only.

    File by file where links lead out of the directory, as in the hub's cache.
    """
    if not request.in_container:
        return ()
    driver = tuple(Mount(source=path, target=path) for path in kind_of_seat(request).mounts)
    return (
        *mounts_of(request.model_path, request.files, request.engine_model_path),
        *driver,
    )


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
    return tuple(item.uuid or str(item.index) for item in claimed(request))
