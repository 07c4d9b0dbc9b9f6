"""The launch plan: the containers of a release in the order of their start, each flag explained.

`moorage plan` prints the object that `moorage deploy` executes.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

from moorage.common.values import Value
from moorage.engines.flags import Flag, Variable
from moorage.engines.labels import LABEL_LEDGER, LABEL_RELEASE, LABEL_REPLICA, LABEL_ROLE
from moorage.engines.workload import OPENAI, Workload
from moorage.inventory.access import parse_access
from moorage.placement.role import Role
from moorage.spec import EngineName, IpcMode, NetworkMode, RestartPolicy, RuntimeName

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""By the address that stands for all of a host, the one that this machine reaches itself by."""


class Mount(Value):
    """A directory of the host that the engine sees; a kept one is created where it is missing.

    The source of a volume is a name: Docker creates it and removes it with the containers.
    """

    source: str
    target: str
    read_only: bool = True
    kept: bool = False
    volume: bool = False


class Link(Value):
    """A symbolic link that is made in the working directory before the start (process runtime)."""

    name: str
    target: str


class GeneratedFile(Value):
    """A file that moorage writes for an engine, before it starts; only its container has it."""

    path: str
    """Absolute, in the container."""

    content: str
    flags: tuple[Flag, ...] = ()
    """The flags that the content follows from, each with its reason."""


class Preparation(Value):
    """The work of a script in a container before it becomes the engine."""

    packages: tuple[str, ...] = ()
    """Python packages that it installs, without blanks."""

    without_cuda_compat: bool = False
    """Whether it removes the libraries for newer drivers."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.packages) or self.without_cuda_compat

    @property
    def words(self) -> tuple[str, ...]:
        """The script's own arguments, in front of the engine's command line."""
        packages = ("--packages", " ".join(self.packages)) if self.packages else ()
        return (*packages, *["--without-cuda-compat"] * self.without_cuda_compat, "--")


class Application(Value):
    """An application of Ray Serve: its base URL, and its entry in the cluster's config."""

    endpoint: str
    config: dict[str, Any]


class Isolation(Value):
    """What a container shares with its host, except model, memory and processors.

    Attributes:
        user: `id` or `id:group`; empty = as the image says.
        ulimits: By name; -1 = unlimited. Soft and hard limit are the same.
        shares_memory_of: Container whose shared memory it uses instead; empty = as `ipc` says.
        sees_processes_of: Container whose processes it sees as well; empty = none.
        capabilities: Added to Docker's own set.
        nodes: Device nodes, or directories of them.
        runtime: Docker runtime that hands out its accelerators; empty = the daemon's own.
        locked: Whether it may write into its mounts only, and has no capability but those added.
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
    locked: bool = False


class ContainerSpec(Value):
    """One container, one process (`process`), or one application on a Ray cluster (`ray`).

    Attributes:
        address: How the host is reached, as in the fleet.
        image: Image reference, by digest where one is known; empty for a process.
        preparation: What happens in the container before its command; None = nothing.
        environment: All variables; nothing else is inherited but what the system needs.
        accelerator_type: `cuda`, ...; `cpu` without accelerators.
        devices: Identifiers (UUID, or index as text) of the accelerators it may see.
        bind: Address on the host under which the port is published.
        port: Port on the host; inside the container it is the same.
        services: Further ports of the same kind, by what they are for.
        base_path: Where the HTTP interface begins, below the endpoint.
        memory_bytes: Limit of RAM; 0 = none.
        cores: Limit of processor cores; 0 = none.
        working_directory: Where a container starts; empty = as its image says. A process starts in
            a folder of its own.
        awaits: Container of the plan whose port must be open before this one starts; empty = none.
        application: The application on a Ray cluster; None = it runs on a host. `command` then
            holds the flags that its arguments follow from, `host` names the cluster, and bind and
            port are empty.
    """

    name: str
    host: str
    address: str
    runtime: RuntimeName
    image: str = ""
    command: tuple[Flag, ...]
    preparation: Preparation | None = None
    environment: tuple[Variable, ...] = ()
    mounts: tuple[Mount, ...] = ()
    accelerator_type: str
    devices: tuple[str, ...] = ()
    bind: str
    port: int
    services: dict[str, int] = {}
    base_path: str = OPENAI
    shm_bytes: int = 0
    memory_bytes: int = 0
    cores: int = 0
    labels: dict[str, str]
    working_directory: str = ""
    links: tuple[Link, ...] = ()
    files: tuple[GeneratedFile, ...] = ()
    isolation: Isolation = Isolation.defaults()
    awaits: str = ""
    application: Application | None = None

    @property
    def role(self) -> Role:
        """Part that it plays in its replica."""
        return Role(self.labels[LABEL_ROLE])

    @property
    def runs_engine(self) -> bool:
        """Whether its command is the engine's; else it is a part of the cluster of Ray."""
        return self.role == Role.LEADER or (self.role == Role.FOLLOWER and not self.awaits)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line as it is executed."""
        return tuple(token for flag in self.command for token in flag.tokens)

    @property
    def injected(self) -> tuple[Flag, ...]:
        """What moorage adds to the user's own words."""
        return tuple(flag for flag in self.command if not flag.written)

    @property
    def publishes(self) -> bool:
        """Whether it has a network of its own, of which the port is published."""
        return (
            self.runtime == RuntimeName.DOCKER and self.isolation.network == NetworkMode.PUBLISHED
        )

    @property
    def endpoint(self) -> str:
        """Base URL under which the engine answers."""
        if self.application:
            return self.application.endpoint
        host, access = self.bind, parse_access(self.address)
        if host in LOOPBACK:  # It listens on all addresses of its host.
            host = access.machine if access.is_remote else LOOPBACK[host]
        return f"http://{host_port(host, self.port)}"


class LaunchPlan(Value):
    """Everything that a release starts, leaders first."""

    release: str
    engine: EngineName
    engine_version: str
    """Empty = unknown."""

    checked_against: str = ""
    """Engine and version whose schema was asked about `engine.args`; empty = none was."""

    containers: tuple[ContainerSpec, ...]
    warnings: tuple[str, ...] = ()

    @property
    def on_cluster(self) -> bool:
        """Whether a Ray cluster runs it, and no host."""
        return any(spec.application for spec in self.containers)

    def with_warnings(self, more: Iterable[str]) -> LaunchPlan:
        """The same plan with further warnings at the end."""
        return self.model_copy(update={"warnings": (*self.warnings, *more)})


def start_groups(plan: LaunchPlan) -> tuple[LaunchPlan, ...]:
    """The plan in groups; each starts once the group before is ready.

    vLLM profiles the free memory of its accelerators while it starts, so replicas that share one
    are in different groups. All others are in the first, and leaders with their followers.
    """
    parts: list[list[ContainerSpec]] = []
    taken: list[set[tuple[str, str, str]]] = []
    for containers in _replicas(plan):
        devices = {(c.host, c.accelerator_type, device) for c in containers for device in c.devices}
        turn = 1 + max((at for at, used in enumerate(taken) if used & devices), default=-1)
        if turn == len(parts):
            parts.append([])
            taken.append(set())
        parts[turn] += containers
        taken[turn] |= devices
    return tuple(plan.model_copy(update={"containers": tuple(part)}) for part in parts)


def split_off(plan: LaunchPlan, share: float) -> tuple[LaunchPlan, LaunchPlan]:
    """A share (more than 0, at most 1) of a plan's replicas, rounded up, and the rest."""
    replicas = _replicas(plan)
    # Rounded first: 0.1 * 30 is a little more than 3 in floating point.
    count = max(1, ceil(round(share * len(replicas), 9)))
    first, rest = (
        [spec for containers in part for spec in containers]
        for part in (replicas[:count], replicas[count:])
    )
    return (
        plan.model_copy(update={"containers": tuple(first)}),
        plan.model_copy(update={"containers": tuple(rest)}),
    )


def _replicas(plan: LaunchPlan) -> list[list[ContainerSpec]]:
    replicas: dict[str, list[ContainerSpec]] = {}
    for container in plan.containers:
        replicas.setdefault(container.labels[LABEL_REPLICA], []).append(container)
    return list(replicas.values())


def planned_workload(spec: ContainerSpec) -> Workload:
    """A workload of the plan, before it is started."""
    return Workload(
        name=spec.name,
        release=spec.labels[LABEL_RELEASE],
        ledger=spec.labels[LABEL_LEDGER],
        host=spec.host,
        address=spec.address,
        runtime=spec.runtime,
        endpoint=spec.endpoint,
        base_path=spec.base_path,
        role=spec.role,
        replica=int(spec.labels[LABEL_REPLICA]),
    )


def host_port(host: str, port: int) -> str:
    """An address and a port as URLs have them: IPv6 stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def container_name(release: str, replica: int, role: Role, position: int = 0) -> str:
    """The name of a container: the same release always gives the same names."""
    return f"moorage-{release}-r{replica}-{role}{position or ''}"
