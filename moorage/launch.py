"""The launch plan: exactly what will run, each flag and variable with its origin.

What `moorage plan` prints is the very object that `moorage deploy` executes.
"""

from __future__ import annotations

from moorage.models.assets import Pin
from moorage.placement.placement import Role
from moorage.spec import EngineName, RuntimeName
from moorage.values import Origin, Value

LABEL_LEDGER = "moorage.ledger"
LABEL_MODEL = "moorage.model"
LABEL_RELEASE = "moorage.release"
LABEL_ROLE = "moorage.role"
LABEL_REPLICA = "moorage.replica"


class Flag(Value):
    """Consecutive words of a command line that belong together, and why they are there."""

    tokens: tuple[str, ...]
    origin: Origin
    reason: str


class Variable(Value):
    """An environment variable. A secret is named, not written: it is looked up at launch."""

    name: str
    value: str = ""
    secret: str = ""
    origin: Origin
    reason: str


class Mount(Value):
    """A directory of the host that the engine sees."""

    source: str
    target: str
    read_only: bool = True


class Link(Value):
    """A symbolic link that is made in the working directory before the start (process runtime)."""

    name: str
    target: str


class ContainerSpec(Value):
    """One container, or one process where the runtime is `process`.

    Attributes:
        name: Deterministic: release, replica and role.
        host: Name of the host.
        address: How the host is reached, as in the fleet.
        runtime: What starts it.
        image: Image reference, by digest where one is known; empty for a process.
        command: The whole command line.
        environment: All variables; nothing else is inherited but what the system needs.
        mounts: Directories.
        accelerator_type: `cuda`, ...; `cpu` without accelerators.
        devices: Identifiers (UUID, or index as text) of the accelerators it may see.
        bind: Address on the host under which the port is published.
        port: Port on the host; inside the container it is the same.
        shm_bytes: Shared memory.
        memory_bytes: Limit of RAM; 0 = none.
        cores: Limit of processor cores; 0 = none.
        labels: Ledger, model, release, role, replica.
        working_directory: Where a container starts; empty = as its image says. A process starts in
            a folder of its own.
        links: Made in the working directory (process runtime).
    """

    name: str
    host: str
    address: str
    runtime: RuntimeName
    image: str = ""
    command: tuple[Flag, ...]
    environment: tuple[Variable, ...] = ()
    mounts: tuple[Mount, ...] = ()
    accelerator_type: str
    devices: tuple[str, ...] = ()
    bind: str
    port: int
    shm_bytes: int = 0
    memory_bytes: int = 0
    cores: int = 0
    labels: dict[str, str]
    working_directory: str = ""
    links: tuple[Link, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line as it is executed."""
        return tuple(token for flag in self.command for token in flag.tokens)

    @property
    def endpoint(self) -> str:
        """Base URL under which the engine answers."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.bind, self.bind)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


class LaunchPlan(Value):
    """Everything that a release starts, leaders first.

    Attributes:
        release: Id of the release.
        engine: The engine.
        engine_version: Its version; empty = unknown.
        containers: What is started.
        warnings: What a person should know, such as wishes that cannot be met there.
    """

    release: str
    engine: EngineName
    engine_version: str
    containers: tuple[ContainerSpec, ...]
    warnings: tuple[str, ...] = ()


class Workload(Value):
    """A container or process that was started.

    Attributes:
        name: As in its `ContainerSpec`.
        release: Release that it belongs to.
        ledger: Ledger that the release is in.
        host: Name of the host.
        address: How the host is reached.
        runtime: What started it.
        identity: Container id, or `pid@start-time` of the process.
        endpoint: Base URL under which it answers.
        adapters: LoRA adapters that were loaded into it since it serves; a start forgets them.
    """

    name: str
    release: str
    ledger: str = ""
    host: str
    address: str
    runtime: RuntimeName
    identity: str = ""
    endpoint: str = ""
    adapters: tuple[Pin, ...] = ()


def planned_workload(spec: ContainerSpec) -> Workload:
    """A workload as it is known before it is started."""
    return Workload(
        name=spec.name,
        release=spec.labels[LABEL_RELEASE],
        ledger=spec.labels[LABEL_LEDGER],
        host=spec.host,
        address=spec.address,
        runtime=spec.runtime,
        endpoint=spec.endpoint,
    )


def container_name(release: str, replica: int, role: Role) -> str:
    """The name of a container: the same release always gives the same names."""
    return f"moorage-{release}-r{replica}-{role}"
