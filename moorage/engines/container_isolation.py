"""How far a container is shut off from its host, as it is started."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.spec import IpcMode, NetworkMode, RestartPolicy


class Isolation(Value):
    """Everything that a container has of its host beside model, memory and processors.

    Attributes:
        user: `id` or `id:group`; empty = as the image says.
        groups: More groups, by name or id.
        ulimits: By name; -1 = unlimited. Soft and hard limit are the same.
        ipc: Whose shared memory it has.
        shares_memory_of: Container whose shared memory it has instead; empty = as `ipc` says.
        sees_processes_of: Container whose processes it sees beside its own; empty = none.
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
