"""The seam between moorage and an engine: an engine is one file that fills this in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from moorage.arguments import user_tokens
from moorage.engines.command import filled, kept_flags
from moorage.images.image import Image
from moorage.launch import (
    LABEL_LEDGER,
    LABEL_MODEL,
    LABEL_RELEASE,
    LABEL_REPLICA,
    LABEL_ROLE,
    ContainerSpec,
    Flag,
    Link,
    Mount,
    Variable,
    container_name,
)
from moorage.models.profile import ModelProfile
from moorage.models.source import ModelFile
from moorage.placement.placement import CPU, Seat
from moorage.placement.snapshot import HostSnapshot
from moorage.readiness.diagnosis import LogCause
from moorage.readiness.measured import Measured
from moorage.readiness.protocol import Probe, readiness_probes
from moorage.spec import EngineName, Mode, ModelSpec, RuntimeName
from moorage.values import Origin, Value

MODELS_FOLDER = "/models"
"""Where containers find their model, in a folder of its name."""


class LaunchRequest(Value):
    """What an engine needs to know to be started for one seat.

    Attributes:
        spec: What the user wrote.
        profile: The model.
        seat: Where it runs.
        host: That host.
        release: The release's id.
        ledger: Identity of the ledger that it is in.
        model_path: Directory of the model on the host.
        files: Its files.
        image: The image, or None for a process.
    """

    spec: ModelSpec
    profile: ModelProfile
    seat: Seat
    host: HostSnapshot
    release: str
    ledger: str
    model_path: str
    files: tuple[ModelFile, ...] = ()
    image: Image | None = None

    @property
    def in_container(self) -> bool:
        """Whether the engine runs in a container."""
        return self.seat.runtime == RuntimeName.DOCKER

    @property
    def listen_address(self) -> str:
        """Address on which the engine itself listens."""
        return "0.0.0.0" if self.in_container else self.host.bind

    @property
    def engine_model_path(self) -> str:
        """The model's directory as the engine sees it."""
        return f"{MODELS_FOLDER}/{self.spec.name}" if self.in_container else self.model_path


class Engine(ABC):
    """An inference engine: pure decisions on how it is started and how it is asked."""

    name: ClassVar[EngineName]
    program: ClassVar[str]
    """Command that starts it when it is installed on the host."""

    default_version: ClassVar[str]
    """Version whose image is taken when the spec names none."""

    accelerator_types: ClassVar[frozenset[str]]
    runs_on_cpu: ClassVar[bool]
    reserves_cache: ClassVar[bool] = False
    """Whether it takes its whole KV cache when it starts, so that its need can be predicted."""

    spans_hosts: ClassVar[bool] = False
    """Whether one replica can run on several hosts together."""

    modes: ClassVar[frozenset[Mode]]
    lists_models: ClassVar[bool]
    """Whether `/v1/models` lists the served name."""

    api_key_variable: ClassVar[str] = ""
    """Variable that makes the server ask for a key, where it has one."""

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Other names of its options, so that the user's writing is seen."""

    wishes: ClassVar[frozenset[str]] = frozenset()
    """Fields of the spec that not every engine can fulfil, and this one can."""

    log_causes: ClassVar[tuple[LogCause, ...]] = ()

    @abstractmethod
    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """An estimate of the RAM that serving on CPU takes, and of the KV cache in it.

        Returns:
            Bytes in all, and bytes of the cache; 0 = the engine decides about its cache.
        """

    def ram_on_accelerators(
        self,
        spec: ModelSpec,  # noqa: ARG002
        accelerator_type: str,  # noqa: ARG002
        claimed: int,  # noqa: ARG002
    ) -> int:
        """Bytes of RAM that the spec asks for beside the accelerators of a seat.

        Args:
            spec: What the user wrote.
            accelerator_type: Of the seat.
            claimed: Bytes of accelerator memory that the seat claims.
        """
        return 0

    @abstractmethod
    def base_command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """The program, its model, and the arguments that stand before the user's."""

    @abstractmethod
    def serving_flags(self, request: LaunchRequest) -> tuple[Flag, ...]:
        """Host, port and served name; each is left out where the user gives it."""

    @abstractmethod
    def environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        """Derived and default variables; the user's win over them."""

    @property
    def memory_reader(self) -> Callable[[str], Measured | None] | None:
        """Reads from the log of a healthy start what it says about memory; None = it says none."""
        return None

    def links(self, request: LaunchRequest) -> tuple[Link, ...]:  # noqa: ARG002
        """Links that the process needs in its working directory."""
        return ()

    def extra_mounts(self, request: LaunchRequest) -> tuple[Mount, ...]:  # noqa: ARG002
        """Directories of the host that a container needs besides the model's."""
        return ()

    def warnings(self, request: LaunchRequest) -> tuple[str, ...]:  # noqa: ARG002
        """Wishes of the spec that are left out where this seat is, and why."""
        return ()

    def working_directory(self, request: LaunchRequest) -> str:  # noqa: ARG002
        """Where a container starts; empty = as its image says."""
        return ""

    def probes(self, spec: ModelSpec, profile: ModelProfile) -> tuple[Probe, ...]:
        """How readiness is proven, in order."""
        return readiness_probes(spec, profile, lists_models=self.lists_models)

    def container(self, request: LaunchRequest) -> ContainerSpec:
        """Everything about the container (or process) of one seat."""
        spec, seat, host = request.spec, request.seat, request.host
        extra = self.extra_mounts(request) if request.in_container else ()
        return ContainerSpec(
            name=container_name(request.release, seat.replica, seat.role),
            host=host.name,
            address=host.address,
            runtime=seat.runtime,
            image=request.image.pinned if request.image else "",
            command=self._command(request),
            environment=self._environment(request),
            mounts=(*_mounts(request), *extra),
            accelerator_type=seat.accelerator_type,
            devices=_devices(request),
            bind=host.bind,
            port=seat.port,
            shm_bytes=int(spec.engine.shm) if request.in_container else 0,
            memory_bytes=seat.ram_bytes if seat.accelerator_type == CPU else 0,
            cores=seat.cores,
            labels={
                LABEL_LEDGER: request.ledger,
                LABEL_MODEL: spec.name,
                LABEL_RELEASE: request.release,
                LABEL_ROLE: seat.role,
                LABEL_REPLICA: str(seat.replica),
            },
            working_directory=self.working_directory(request) if request.in_container else "",
            links=() if request.in_container else self.links(request),
        )

    def _command(self, request: LaunchRequest) -> tuple[Flag, ...]:
        if request.spec.engine.command is not None:
            return (_own_command(request),)
        tokens = user_tokens(request.spec.engine.args)
        derived = (*self.base_command(request), *self.serving_flags(request))
        kept = kept_flags(derived, tokens, self.aliases)
        own = (Flag(tokens=tokens, origin=Origin.USER, reason="engine.args"),) if tokens else ()
        return (*kept, *own)

    def _environment(self, request: LaunchRequest) -> tuple[Variable, ...]:
        derived = (*self.environment(request), *_visibility(request), *_compatibility(request))
        variables = {variable.name: variable for variable in derived}
        for name, value in request.spec.engine.env.items():
            variables[name] = Variable(
                name=name, value=value, origin=Origin.USER, reason="engine.env"
            )
        for name, secret in request.spec.secrets.items():
            variables[name] = Variable(
                name=name, secret=secret, origin=Origin.USER, reason="secrets"
            )
        return tuple(variables.values())


VISIBILITY = {
    "cuda": ("CUDA_VISIBLE_DEVICES", ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")),
    "rocm": ("HIP_VISIBLE_DEVICES", None),
}
"""By accelerator type: the variable that names a process's devices, and how they are counted."""


def _visibility(request: LaunchRequest) -> tuple[Variable, ...]:
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


def _compatibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """NVIDIA's hook refuses an image whose CUDA is newer than the driver's in the minor version."""
    image = request.image
    if not image or not image.newer_runtime or request.seat.accelerator_type != "cuda":
        return ()
    reason = "the image's CUDA is newer than the driver's; they are of the same major version"
    return (
        Variable(name="NVIDIA_DISABLE_REQUIRE", value="1", origin=Origin.DERIVED, reason=reason),
    )


def _own_command(request: LaunchRequest) -> Flag:
    seat = request.seat
    values = {
        "model_path": request.engine_model_path,
        "model_name": request.spec.name,
        "host": request.listen_address,
        "host_ip": request.host.bind,
        "port": str(seat.port),
        "accelerator_count": str(len(seat.accelerators)),
        "accelerator_ids": ",".join(map(str, seat.accelerators)),
    }
    tokens = filled(request.spec.engine.command or (), values, request.spec.engine.env)
    return Flag(tokens=tokens, origin=Origin.USER, reason="engine.command")


def _mounts(request: LaunchRequest) -> tuple[Mount, ...]:
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


def _devices(request: LaunchRequest) -> tuple[str, ...]:
    by_index = {item.index: item for item in request.host.accelerators}
    return tuple(by_index[index].uuid or str(index) for index in request.seat.accelerators)
