"""A replica over hosts that Ray joins: the containers of its cluster, and of the engine in it."""

from __future__ import annotations

from moorage.common.values import Origin
from moorage.engines.launch import LABEL_ROLE, ContainerSpec, Flag, Mount, Variable, container_name
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.ray import SIDE_VARIABLES, RayPorts, meeting_place, ray_start
from moorage.engines.vllm.rule import derived, variable
from moorage.placement.placement import Role
from moorage.spec import IpcMode

TMP = "/tmp"
"""Where Ray's processes and the engine that uses them find each other's sockets."""


def is_clustered(request: LaunchRequest) -> bool:
    """Whether Ray joins the hosts of the replica."""
    links = request.seat.links
    return request.spans_hosts and links is not None and links.ray is not None


def clustered(request: LaunchRequest, engine: ContainerSpec) -> tuple[ContainerSpec, ...]:
    """The containers of a seat: the head and the engine where it leads, else a part of Ray.

    The engine's workers are started by Ray, so every container has image, devices, model and
    variables of the engine. Head and engine share `/tmp` and shared memory besides, and the engine
    sees the head's processes: Ray (as of 2.60) finds its own node among those that run.

    Args:
        request: The seat.
        engine: The container as it would be without Ray.
    """
    if not request.leads:
        return (engine.model_copy(update={"command": _ray(request), "awaits": head_name(request)}),)
    shared = Mount(source=f"{engine.name}-tmp", target=TMP, read_only=False, volume=True)
    mounts = (*engine.mounts, shared)
    name = head_name(request)
    isolation = engine.isolation
    lends = isolation.model_copy(update={"ipc": _lent(isolation.ipc)})
    memory = "" if _is_host(lends.ipc) else name
    borrows = isolation.model_copy(update={"shares_memory_of": memory, "sees_processes_of": name})
    head = engine.model_copy(
        update={
            "name": name,
            "command": _ray(request),
            "environment": _beside(engine.environment),
            "mounts": mounts,
            "port": _ports(request).first,
            "labels": {**engine.labels, LABEL_ROLE: Role.RAY_HEAD.value},
            "isolation": lends,
        }
    )
    leader = engine.model_copy(
        update={
            "environment": (*engine.environment, _address(request)),
            "mounts": mounts,
            "shm_bytes": engine.shm_bytes if _is_host(lends.ipc) else 0,
            "isolation": borrows,
            "awaits": name,
        }
    )
    return head, leader


def head_name(request: LaunchRequest) -> str:
    """Name of the container in which the cluster's head runs."""
    return container_name(request.release, request.seat.replica, Role.RAY_HEAD)


def _ray(request: LaunchRequest) -> tuple[Flag, ...]:
    own, leader = request.peers[request.seat.position].address, request.peers[0].address
    words = ray_start(_ports(request), own, leader, request.leads, _meeting(request))
    return (derived("a part of the cluster that joins the hosts", *words),)


def _ports(request: LaunchRequest) -> RayPorts:
    """The range of this host."""
    return _range(request.seat.links.ray if request.seat.links else None)


def _meeting(request: LaunchRequest) -> int:
    """The port of the head; every host has a range of its own."""
    links = request.peers[0].seat.links
    return _range(links.ray if links else None).first


def _range(found: tuple[int, int] | None) -> RayPorts:
    assert found is not None  # `is_clustered` was asked
    return RayPorts(first=found[0], last=found[1])


def _address(request: LaunchRequest) -> Variable:
    value = meeting_place(request.peers[0].address, _meeting(request))
    return variable("RAY_ADDRESS", value, "the cluster that was started for it", Origin.DERIVED)


def _beside(environment: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """The engine's variables, but Ray's log is what the head's log is for."""
    kept = (item for item in environment if item.name not in SIDE_VARIABLES)
    reason = "Ray's log is this container's log"
    own = (variable(name, value, reason) for name, value in SIDE_VARIABLES.items())
    return (*kept, *own)


def _lent(ipc: IpcMode) -> IpcMode:
    return IpcMode.SHAREABLE if ipc == IpcMode.PRIVATE else ipc


def _is_host(ipc: IpcMode) -> bool:
    return ipc == IpcMode.HOST
