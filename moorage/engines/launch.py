"""The launch plan: the containers of a release in the order of their start, each flag explained.

`moorage plan` prints the object that `moorage deploy` executes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import chain
from math import ceil
from typing import Any

from moorage.common.values import Value
from moorage.engines.flags import Flag, Variable
from moorage.engines.labels import LABEL_LEDGER, LABEL_RELEASE, LABEL_REPLICA, LABEL_ROLE
from moorage.engines.workload import OPENAI, Workload
from moorage.inventory.access import LOOPBACK, parse_access
from moorage.placement.role import Role
from moorage.spec import EngineName, IpcMode, NetworkMode, RestartPolicy, RuntimeName


class Mount(Value):
    """A directory of the host that the engine sees; if `kept`, it is created when missing.

    The source of a volume is a name: Docker creates the volume and removes it with the containers.
    """

    source: str
    target: str
    read_only: bool = True
    kept: bool = False
    volume: bool = False


class Link(Value):
    """A symbolic link created in the working directory before the start (process runtime)."""

    name: str
    target: str


class GeneratedFile(Value):
    """A file that moorage writes into an engine's container before the start."""

    path: str
    """Absolute path in the container."""

    content: str
    flags: tuple[Flag, ...] = ()
    """The flags that became the content, each with its reason."""


class Preparation(Value):
    """The work of the script that runs in a container before it becomes the engine."""

    packages: tuple[str, ...] = ()
    """Requirements of Python packages to install, without blanks."""

    without_cuda_compat: bool = False
    """Whether it removes CUDA's compatibility libraries for newer drivers."""

    @property
    def words(self) -> tuple[str, ...]:
        """The script's own arguments, in front of the engine's command line."""
        packages = ("--packages", " ".join(self.packages)) if self.packages else ()
        return (*packages, *["--without-cuda-compat"] * self.without_cuda_compat, "--")


class Application(Value):
    """A Ray Serve application: its base URL, and its entry in the cluster's config."""

    endpoint: str
    config: dict[str, Any]


class Isolation(Value):
    """The resources that a container shares with its host, except model, memory and processors.

    Attributes:
        user: `id` or `id:group`; empty = the image's user.
        ulimits: Limits by name, soft and hard alike; -1 = unlimited.
        shares_memory_of: Container whose shared memory it uses; empty = `ipc` decides.
        sees_processes_of: Container whose processes it sees as well; empty = none.
        capabilities: Capabilities added to Docker's default set.
        nodes: Device nodes, or directories of device nodes.
        runtime: Docker runtime that provides its accelerators; empty = the daemon's default.
        locked: Whether it can write only into its mounts, and has only the added capabilities.
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
        preparation: Work in the container before its command; None = nothing.
        environment: All variables; only variables that the system needs are inherited in addition.
        accelerator_type: `cuda`, ...; `cpu` without accelerators.
        devices: Identifiers (UUID, or index as text) of the accelerators it may see.
        bind: Address on the host at which the port is published.
        port: Port on the host and inside the container.
        services: Further ports of the same kind, by use.
        base_path: Path prefix of the HTTP interface, below the endpoint.
        memory_bytes: Limit of RAM; 0 = none.
        cores: Limit of processor cores; 0 = none.
        working_directory: Working directory of a container; empty = the image's. A process starts
            in its own folder.
        awaits: Container of the plan whose port must be open before this one starts; empty = none.
        application: The application on a Ray cluster; None = it runs on a host. With an
            application, `command` holds the flags that became its arguments, `host` names the
            cluster, and `bind` and `port` are empty.
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
        """Its role in the replica."""
        return Role(self.labels[LABEL_ROLE])

    @property
    def replica(self) -> int:
        """The number of its replica."""
        return int(self.labels[LABEL_REPLICA])

    @property
    def runs_engine(self) -> bool:
        """Whether its command is the engine's; else it is part of a Ray cluster."""
        return self.role == Role.LEADER or (self.role == Role.FOLLOWER and not self.awaits)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line as it is executed."""
        return tuple(token for flag in self.command for token in flag.tokens)

    @property
    def injected(self) -> tuple[Flag, ...]:
        """Flags that moorage adds to the user's own words."""
        return tuple(flag for flag in self.command if not flag.written)

    @property
    def publishes(self) -> bool:
        """Whether it has its own network, with the port published on the host."""
        return (
            self.runtime == RuntimeName.DOCKER and self.isolation.network == NetworkMode.PUBLISHED
        )

    @property
    def endpoint(self) -> str:
        """Base URL under which the engine answers."""
        if self.application:
            return self.application.endpoint
        host, access = self.bind, parse_access(self.address)
        if host in LOOPBACK:  # the engine listens on all addresses of its host
            host = access.machine if access.is_remote else LOOPBACK[host]
        return f"http://{host_port(host, self.port)}"


class LaunchPlan(Value):
    """Everything that a release starts, leaders first."""

    release: str
    engine: EngineName
    engine_version: str
    """Empty = unknown."""

    checked_against: str = ""
    """Engine and version whose schema `engine.args` were checked against; empty = unchecked."""

    key_variable: str = ""
    """Variable with the API key that the engine requires; empty = the engine's usual one."""

    containers: tuple[ContainerSpec, ...]
    warnings: tuple[str, ...] = ()

    @property
    def on_cluster(self) -> bool:
        """Whether it runs on a Ray cluster instead of hosts."""
        return any(spec.application for spec in self.containers)

    def with_containers(self, containers: Iterable[ContainerSpec]) -> LaunchPlan:
        """The same plan for these containers."""
        return self.model_copy(update={"containers": tuple(containers)})

    def of_replicas(self, replicas: Collection[int]) -> LaunchPlan:
        """The same plan for these replicas."""
        return self.with_containers(one for one in self.containers if one.replica in replicas)

    def with_warnings(self, more: Iterable[str]) -> LaunchPlan:
        """The same plan with further warnings at the end."""
        return self.model_copy(update={"warnings": (*self.warnings, *more)})


def start_groups(plan: LaunchPlan) -> tuple[LaunchPlan, ...]:
    """The plan in groups, each of which starts when the previous group is ready.

    vLLM profiles the free memory of its accelerators while it starts, so replicas that share an
    accelerator are in different groups. All other replicas are in the first group. The containers
    of a replica stay together.
    """
    parts = defaultdict[int, list[ContainerSpec]](list)
    taken = defaultdict[int, set[tuple[str, str, str]]](set)
    for containers in _replicas(plan):
        devices = {(c.host, c.accelerator_type, device) for c in containers for device in c.devices}
        turn = 1 + max((at for at, used in taken.items() if used & devices), default=-1)
        parts[turn] += containers
        taken[turn] |= devices
    return tuple(map(plan.with_containers, parts.values()))


def split_off(plan: LaunchPlan, share: float) -> tuple[LaunchPlan, LaunchPlan]:
    """Split a plan into a share (above 0, at most 1) of its replicas, rounded up, and the rest."""
    replicas = _replicas(plan)
    # Round first, because 0.1 * 30 is a little more than 3 in floating point.
    count = max(1, ceil(round(share * len(replicas), 9)))
    first, rest = (
        plan.with_containers(chain.from_iterable(part))
        for part in (replicas[:count], replicas[count:])
    )
    return first, rest


def _replicas(plan: LaunchPlan) -> list[list[ContainerSpec]]:
    replicas = defaultdict[int, list[ContainerSpec]](list)
    for container in plan.containers:
        replicas[container.replica].append(container)
    return list(replicas.values())


def planned_workload(spec: ContainerSpec) -> Workload:
    """The workload of a container in the plan, before it starts."""
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
        replica=spec.replica,
    )


def host_port(host: str, port: int) -> str:
    """An address and a port as in URLs, with IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def container_name(release: str, replica: int, role: Role, position: int = 0) -> str:
    """The name of a container; it depends only on release, replica, role and position."""
    return f"moorage-{release}-r{replica}-{role}{position or ''}"
