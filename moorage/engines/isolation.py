"""How far a container is shut off from its host."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.common.values import Value
from moorage.engines.request import LaunchRequest
from moorage.inventory.devices import DeviceKind, device_kind, device_nodes, sees_others
from moorage.inventory.snapshot import Accelerator
from moorage.placement.placement import CPU
from moorage.spec import ContainerSettings, IpcMode, NetworkMode, RestartPolicy


class Isolation(Value):
    """What a container shares with its host, except model, memory and processors.

    Attributes:
        user: `id` or `id:group`; empty = as the image says.
        groups: More groups, by name or id.
        ulimits: By name; -1 = unlimited. Soft and hard limit are the same.
        ipc: Whose shared memory it has.
        shares_memory_of: Container whose shared memory it uses instead; empty = as `ipc` says.
        sees_processes_of: Container whose processes it sees as well; empty = none.
        network: How it is reached.
        restart: What Docker does when it ends.
        capabilities: Added to Docker's own set.
        privileged: Whether it has every right of the host.
        nodes: Device nodes, or directories of them.
        runtime: Docker runtime that hands out its accelerators; empty = the daemon's own.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    ulimits: dict[str, int] = {}
    ipc: IpcMode = IpcMode.PRIVATE
    shares_memory_of: str = ""
    sees_processes_of: str = ""
    network: NetworkMode = NetworkMode.PUBLISHED
    restart: RestartPolicy = RestartPolicy.NONE
    capabilities: tuple[str, ...] = ()
    privileged: bool = False
    nodes: tuple[str, ...] = ()
    runtime: str = ""


def isolation(request: LaunchRequest) -> Isolation:
    """The isolation of a seat's container; a process has none."""
    if not request.in_container:
        return Isolation()
    settings, kind = request.spec.engine.container, device_kind_of(request)
    return Isolation(
        user=_user(settings),
        groups=tuple(dict.fromkeys((*kind.groups, *settings.groups))),
        ulimits=settings.ulimits,
        ipc=settings.ipc,
        network=NetworkMode.HOST if request.spans_hosts else settings.network,
        restart=settings.restart,
        capabilities=() if settings.privileged else _added(kind, settings),
        privileged=settings.privileged,
        nodes=device_nodes(kind, claimed_accelerators(request)),
        runtime=kind.runtime,
    )


def device_kind_of(request: LaunchRequest) -> DeviceKind:
    """The kind of the seat's accelerators; empty for a seat on CPU."""
    seat = request.seat
    return DeviceKind() if seat.accelerator_type == CPU else device_kind(seat.accelerator_type)


def claimed_accelerators(request: LaunchRequest) -> tuple[Accelerator, ...]:
    """The seat's accelerators, in its order."""
    own = {(item.type, item.index): item for item in request.host.accelerators}
    return tuple(own[request.seat.accelerator_type, index] for index in request.seat.accelerators)


def sees_more_than_claimed(request: LaunchRequest) -> bool:
    """Whether the engine could use accelerators that are not its own."""
    if not request.in_container or request.spec.engine.container.privileged:
        return True
    return sees_others(device_kind_of(request), claimed_accelerators(request))


def shm_bytes(request: LaunchRequest) -> int:
    """Size of the container's own shared memory; 0 = it has none of its own."""
    engine = request.spec.engine
    if not request.in_container or engine.container.ipc == IpcMode.HOST:
        return 0
    return int(engine.shm)


def memory_bytes(request: LaunchRequest) -> int:
    """Limit of RAM: the claim on CPU, else what the spec says; 0 = none."""
    if request.seat.accelerator_type == CPU:
        return request.seat.ram_bytes
    return int(request.spec.engine.container.memory or 0)


def cores(request: LaunchRequest) -> int:
    """Limit of processor cores: the claim, else what the spec says; 0 = none."""
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
    if not settings.privileged and sees_more_than_claimed(request):
        yield (
            f"{request.host.name}: the container gets /dev/dri as a whole; write down `node` of"
            f" each {seat.accelerator_type} accelerator in the fleet file to narrow it"
        )


def _user(settings: ContainerSettings) -> str:
    if settings.user is None:
        return ""
    return str(settings.user) if settings.group is None else f"{settings.user}:{settings.group}"


def _added(kind: DeviceKind, settings: ContainerSettings) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*kind.capabilities, *settings.capabilities)))
