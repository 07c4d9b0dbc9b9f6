"""A replica over several hosts: the containers of its Ray cluster, refusals and warnings."""

from collections.abc import Iterator

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.common.versions import at_least
from moorage.engines.flags import Flag, derived_flag, variable
from moorage.engines.labels import LABEL_ROLE
from moorage.engines.launch import ContainerSpec, Mount, container_name, host_port
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.distributed import NATIVE_SINCE, parallel_flags, topology_of
from moorage.engines.vllm.launch_facts import is_clustered, ranks_by_host, version_of
from moorage.placement.parallelism import Shape
from moorage.placement.placement import CPU, Seat
from moorage.placement.role import Role
from moorage.spec import IpcMode

OFFSETS = {
    "node-manager-port": 7,
    "object-manager-port": 8,
    "runtime-env-agent-port": 9,
    "dashboard-agent-grpc-port": 4,
    "dashboard-agent-listen-port": 5,
    "metrics-export-port": 6,
    "min-worker-port": 10,
}
"""Offsets of Ray's ports in a host's range for Ray, so that a firewall can allow them.

The head listens at offset 0, its dashboard at 2. Offsets 1 and 3 stay unused, because older
versions of Ray listen there (client and dashboard gRPC, until 2.45).
"""


def ray_start(request: LaunchRequest) -> tuple[str, ...]:
    """The command that adds a seat's host to the cluster, or starts the cluster there."""
    own, (first, last) = request.peers[request.seat.position].host.bind, _ports(request.seat)
    joins = [f"--address={_head_address(request)}"]
    if request.leads:
        joins = [
            "--head",
            f"--port={first}",
            f"--dashboard-host={own}",
            f"--dashboard-port={first + 2}",
        ]
    return (
        *("ray", "start", "--block", "--disable-usage-stats", "--verbose"),
        *(f"--{name}={first + offset}" for name, offset in OFFSETS.items()),
        f"--max-worker-port={last}",
        f"--node-ip-address={own}",
        *joins,
    )


def ray_containers(request: LaunchRequest, engine: ContainerSpec) -> tuple[ContainerSpec, ...]:
    """The containers of a seat: Ray's head and the engine for the leader, else a Ray worker.

    Ray starts the engine's workers, so every container has the engine's image, devices, model and
    variables, as without Ray. Head and engine also share `/tmp` with Ray's sockets, and shared
    memory, and the engine sees the head's processes, among which Ray (as of 2.60) looks for its own
    node.
    """
    if not request.leads:
        return (engine.model_copy(update={"command": _ray(request), "awaits": head_name(request)}),)
    shared = Mount(source=f"{engine.name}-tmp", target="/tmp", read_only=False, volume=True)
    both = engine.model_copy(update={"mounts": (*engine.mounts, shared)})
    return _head_container(request, both), _leader_container(request, both)


def _head_container(request: LaunchRequest, engine: ContainerSpec) -> ContainerSpec:
    ipc = engine.isolation.ipc
    shared = IpcMode.SHAREABLE if ipc == IpcMode.PRIVATE else ipc
    log = variable("RAY_LOG_TO_STDERR", "1", "Ray's log is this container's log")
    environment = (item for item in engine.environment if item.name != log.name)
    return engine.model_copy(
        update={
            "name": head_name(request),
            "command": _ray(request),
            "environment": (*environment, log),
            "port": _ports(request.seat)[0],
            "labels": {**engine.labels, LABEL_ROLE: Role.RAY_HEAD.value},
            "isolation": engine.isolation.model_copy(update={"ipc": shared}),
        }
    )


def _leader_container(request: LaunchRequest, engine: ContainerSpec) -> ContainerSpec:
    """The engine's container, with the head's shared memory unless it uses the host's."""
    head, is_host = head_name(request), engine.isolation.ipc == IpcMode.HOST
    reason = "the cluster that was started for it"
    cluster = variable("RAY_ADDRESS", _head_address(request), reason, Origin.DERIVED)
    shares = {"shares_memory_of": "" if is_host else head, "sees_processes_of": head}
    return engine.model_copy(
        update={
            "environment": (*engine.environment, cluster),
            "shm_bytes": engine.shm_bytes if is_host else 0,
            "isolation": engine.isolation.model_copy(update=shares),
            "awaits": head,
        }
    )


def head_name(request: LaunchRequest) -> str:
    """Name of the container in which the cluster's head runs."""
    return container_name(request.release, request.seat.replica, Role.RAY_HEAD)


def _ray(request: LaunchRequest) -> tuple[Flag, ...]:
    return (derived_flag("a part of the cluster that joins the hosts", *ray_start(request)),)


def _head_address(request: LaunchRequest) -> str:
    leader = request.peers[0]
    return host_port(leader.host.bind, _ports(leader.seat)[0])


def _ports(seat: Seat) -> tuple[int, int]:
    """First and last port of Ray on a host; each host has its own range."""
    ports = seat.links.ray if seat.links else None
    assert ports is not None  # `is_clustered` is true here
    return ports


WITHOUT_RAY = "0.18.0"
"""First version whose images lack Ray (vLLM pull request 36170)."""


def spanning_refusal(request: LaunchRequest) -> Failure | None:
    """The reason not to start a seat of a replica over hosts; None = it may start."""
    if not request.spans_hosts:
        return None
    if request.spec.engine.command is not None:
        return Failure(
            Cause.BAD_SPEC,
            "engine.command: one line cannot start the different hosts of a replica",
            suggestion="Use `engine.entrypoint` and `engine.args`.",
        )
    version = version_of(request)
    if is_clustered(request) or not version:
        return None
    if at_least(version, NATIVE_SINCE) or topology_of(request).shape == Shape.DP_ONLY:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"engine.distributed: vLLM {version} cannot join hosts itself",
        suggestion=f"Take vLLM {NATIVE_SINCE} or newer, or set `engine.distributed: ray`.",
    )


def spanning_warnings(request: LaunchRequest) -> Iterator[str]:
    """Warnings about the network, the device and the image of a replica over hosts."""
    if not request.spans_hosts:
        return
    if not request.host.interface:
        yield (
            f"{request.host.name}: its network interface to the other hosts is not known, so the"
            " engine guesses; write `interface` in the fleet file"
        )
    if not is_clustered(request) or not request.leads:
        return
    counts = ranks_by_host(request)
    if len(set(counts)) > 1 and parallel_flags(request):
        numbers = ", ".join(map(str, counts))
        yield f"hosts of {numbers} accelerators share no layers: each accelerator is a stage"
    if request.seat.accelerator_type == CPU:
        yield "vLLM on CPU refuses Ray: the cluster starts, the engine ends; take `native`"
    version = request.image.engine_version if request.image else ""
    packages = request.spec.engine.packages
    if at_least(version, WITHOUT_RAY) and not any(name.startswith("ray") for name in packages):
        yield (
            f"vLLM's images hold no Ray since {WITHOUT_RAY}: `engine.packages: ['ray[cgraph]']`"
            " installs it, if this image has none"
        )
