"""The interface between moorage and an engine; each engine implements it in one file or folder."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from moorage.common.failures import Failure
from moorage.common.units import GIB
from moorage.common.values import Origin, Value
from moorage.engines.api_key import generated_key
from moorage.engines.command_line import (
    filled,
    own_command,
    placeholders,
    start_flags,
    without_user_flags,
)
from moorage.engines.companions import companion_mounts
from moorage.engines.flags import Flag, Variable, user_flag, variable
from moorage.engines.labels import labels_of
from moorage.engines.launch import (
    ContainerSpec,
    GeneratedFile,
    Isolation,
    Link,
    Mount,
    container_name,
)
from moorage.engines.recovery import Remedy
from moorage.engines.request import LaunchRequest
from moorage.engines.schema.argument import Rules
from moorage.engines.seat import (
    compatibility,
    cores,
    devices,
    isolation,
    memory_bytes,
    mounts,
    preparation,
    shm_bytes,
    visibility,
)
from moorage.engines.sleep import EngineSleep
from moorage.engines.updates import AdapterUpdates
from moorage.engines.workload import OPENAI
from moorage.memory.need import Need
from moorage.models.profile import ModelProfile
from moorage.placement.engine import EngineTraits
from moorage.readiness.diagnosis import LogCause
from moorage.readiness.engine_facts import Measured
from moorage.readiness.protocol import Probe, readiness_probes
from moorage.spec import EngineName, ModelSpec
from moorage.spec.arguments import parse_words

PROCESS_BYTES = 2 * GIB
"""RAM of a server and its requests; that of transformers takes 0.5 GiB with a tiny model."""


class Busy(Value):
    """Where an engine reports its requests in flight.

    A name may select label sets of its metric: `tokens_total{mode="decode"}`.

    Attributes:
        path: HTTP path of its metrics, in Prometheus' text format.
        running: Name of the metric that counts running requests.
        waiting: Name of the metric that counts queued requests.
        answering: Name of the metric that counts unanswered HTTP requests, where the other two miss
            some; empty = they miss none.
        generated: Name of the metric that counts generated tokens after each step; empty = none.
        progress: Names of the metrics that grow only while it generates.
        guarded: Whether the metrics require the engine's API key, if it has one.
    """

    path: str
    running: str
    waiting: str
    answering: str = ""
    generated: str = ""
    progress: tuple[str, ...] = ()
    guarded: bool = False


class Engine(EngineTraits):
    """An inference engine: pure functions that decide its command line and probes."""

    lists_models: ClassVar[bool]
    """Whether `/v1/models` lists the served name."""

    api_key_variable: ClassVar[str] = ""
    """Environment variable that makes the server require a key; empty = none."""

    busy: ClassVar[Busy | None] = None
    """Where it reports requests in flight; None = it does not."""

    shutdown_option: ClassVar[str] = ""
    """Option with the seconds that it may take to exit after SIGTERM; empty = none."""

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Other names of its options, for recognising them in the user's arguments."""

    features: ClassVar[frozenset[str]] = frozenset()
    """Optional fields of the spec that it supports."""

    updates: ClassVar[AdapterUpdates | None] = None
    """How it loads adapters while serving; None = it cannot."""

    argument_rules: ClassVar[Rules | None] = None
    """Rules for its arguments; None = arguments are not checked before the start."""

    takes_arguments_of: ClassVar[EngineName | None] = None
    """The engine whose versions of arguments it shares; None = it has its own."""

    planned_by_version: ClassVar[bool] = False
    """Whether its plans depend on the arguments of the version that runs."""

    model_paths: ClassVar[tuple[str, ...]] = ()
    """Paths outside `/v1` whose requests name the model."""

    log_causes: ClassVar[tuple[LogCause, ...]] = ()

    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """RAM of weights and server; it does not reserve its cache."""
        return int(profile.weight_bytes * 1.2) + PROCESS_BYTES, 0

    @abstractmethod
    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Program and model in the first flag, then the arguments before the user's."""

    @abstractmethod
    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host, port and served name; a flag that the user states is dropped later."""

    def written_words(self, request: LaunchRequest) -> tuple[tuple[str, ...], str]:
        """The user's words at the end of the command line, and the spec's field that holds them."""
        return request.spec.engine.arguments.words, "engine.args"

    def rules(self, *, in_container: bool) -> Rules | None:
        """The rules for its arguments in a container or as a process; None = not checked."""
        return self.argument_rules

    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """Derived and default variables; the user's variables override them."""
        return ()

    def start_of(self, request: LaunchRequest) -> str:
        """The program that starts it: the installed path for a process, its name in a container."""
        installed = None if request.in_container else request.host.program(self.name)
        return installed.path if installed else self.program

    def fixed_variables(self, request: LaunchRequest) -> frozenset[str]:
        """Names of derived variables that the user cannot override."""
        return frozenset()

    def refusal(self, request: LaunchRequest) -> Failure | None:
        """The reason not to start it on a seat; None = it may start."""
        return None

    @property
    def memory_reader(self) -> Callable[[str], Measured | None] | None:
        """Reads memory sizes from the log of a healthy start; None = the engine logs none."""
        return None

    def remedy(self, failure: Failure, need: Need | None) -> Remedy | None:
        """A value named by the engine with which it would start; None = it named none.

        `need` is the predicted memory of one accelerator; None = no prediction.
        """
        return None

    def adapter_name(self, model: str, adapter: str) -> str:
        """The model name by which a request selects an adapter; empty = not by a model name."""
        return adapter

    def sleep(self, spec: ModelSpec) -> EngineSleep | None:
        """How it sleeps without exiting, as the spec requests; None = it is stopped instead."""
        return None

    def bytes_asleep(self, need: Need | None, claimed: int) -> int:
        """Bytes that it keeps of one accelerator while asleep, out of its claim."""
        return claimed

    def links(self, request: LaunchRequest) -> tuple[Link, ...]:
        """Links that the process needs in its working directory."""
        return ()

    def extra_mounts(self, request: LaunchRequest) -> tuple[Mount, ...]:
        """Directories of the host that a container needs in addition to the model's."""
        return companion_mounts(request)

    def files(self, request: LaunchRequest) -> tuple[GeneratedFile, ...]:
        """Files to write into its container before the start.

        Raises:
            Failure: `BAD_SPEC` when the user's settings cannot be written to a file.
        """
        return ()

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:
        """Warnings about this seat, such as fields of the spec without effect."""
        return ()

    def working_directory(self, request: LaunchRequest) -> str:
        """Working directory of a container; empty = the image's."""
        return ""

    def base_path(self, spec: ModelSpec) -> str:
        """Path prefix of its HTTP interface."""
        return OPENAI

    def probes(self, spec: ModelSpec, profile: ModelProfile) -> tuple[Probe, ...]:
        """The probes that prove readiness, in order."""
        return readiness_probes(spec, profile, lists_models=self.lists_models)

    def metrics_url(self, container: ContainerSpec) -> str:
        """URL of a container's metrics in Prometheus' text format; empty = none."""
        return f"{container.endpoint}{self.busy.path}" if self.busy else ""

    def isolation(self, request: LaunchRequest) -> Isolation:
        """The resources that its container shares with the host."""
        return isolation(request)

    def container(self, request: LaunchRequest) -> ContainerSpec:
        """The container (or process) of one seat.

        Raises:
            Failure: When the engine must not be started there.
        """
        if refusal := self.refusal(request):
            raise refusal
        seat, host = request.seat, request.host
        extra = self.extra_mounts(request) if request.in_container else ()
        return ContainerSpec(
            name=container_name(request.release, seat.replica, seat.role, seat.position),
            host=host.name,
            address=host.address,
            runtime=seat.runtime,
            image=request.image.pinned if request.image else "",
            command=self._command(request),
            preparation=preparation(request),
            environment=self._environment(request),
            mounts=(*mounts(request), *extra),
            accelerator_type=seat.accelerator_type,
            devices=devices(request),
            bind=host.bind,
            port=seat.port,
            services=seat.services,
            base_path=self.base_path(request.spec),
            shm_bytes=shm_bytes(request),
            memory_bytes=memory_bytes(request),
            cores=cores(request),
            labels=labels_of(request.ledger, request.spec.name, request.release, seat),
            working_directory=self.working_directory(request) if request.in_container else "",
            links=() if request.in_container else self.links(request),
            files=self.files(request),
            isolation=self.isolation(request),
        )

    def containers(self, request: LaunchRequest) -> tuple[ContainerSpec, ...]:
        """Everything that a seat starts, in the order in which it starts.

        Raises:
            Failure: When the engine must not be started there.
        """
        return (self.container(request),)

    def _command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        if request.spec.engine.command is not None:
            return (own_command(request),)
        tokens, field = self.written_words(request)
        first, *derived = (*self.base_command(request), *self.serving_flags(request))
        start = start_flags(request, self.name, first)
        stated = parse_words((*(word for flag in start for word in flag.tokens), *tokens))
        kept = without_user_flags(derived, stated, self.aliases)
        return (*start, *kept, *([user_flag(field, tokens)] if tokens else []))

    def _environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        own, key = self.environment(request), generated_key(request, self.api_key_variable)
        derived = (*own, *visibility(request), *compatibility(request), *key)
        variables = {one.name: one for one in derived}
        fixed, values = self.fixed_variables(request), placeholders(request)
        for name, written in request.spec.engine.env.items():
            if name not in fixed:
                (value,) = filled((written,), values, {})
                variables[name] = variable(name, value, "engine.env", Origin.USER)
        for name, secret in request.spec.secrets.items():
            variables[name] = Variable(
                name=name, secret=secret, origin=Origin.USER, reason="secrets"
            )
        return tuple(variables.values())
