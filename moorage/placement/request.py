"""What is to be placed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.common.failures import Cause, Failure
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.calibration import Measurement
from moorage.memory.demand import MemoryModel
from moorage.models.profile import ModelProfile
from moorage.placement.baseline.terms import by_baseline_rules, read_terms
from moorage.placement.demand import CpuDemand, Demand
from moorage.placement.engine import (
    EngineTraits,
)
from moorage.placement.memory import (
    CalibratedMemory,
    EstimatedMemory,
    ExactOrEstimatedMemory,
    Memory,
    StatedMemory,
    memory_request,
)
from moorage.placement.parallelism import Parallelism, stated_parallelism
from moorage.spec import Distributed, ModelSpec

MOST_HOSTS = 64
"""Hosts that a replica spans at most."""


@dataclass(frozen=True, slots=True)
class Request:
    """One replica that needs a place.

    Attributes:
        spec: What the user wrote.
        profile: The model.
        engine: The engine that will serve it.
        demand: What it needs of accelerators.
        cpu_demand: What it needs of RAM where processors run the engine.
        stated: Parallelism that the user's arguments fix; None = it is derived.
        staged: The model as hosts list what they have, `source@revision`.
        adapter_bytes: Bytes of the files of its LoRA adapters.
    """

    spec: ModelSpec
    profile: ModelProfile
    engine: EngineTraits
    demand: Demand
    cpu_demand: CpuDemand
    stated: Parallelism | None = None
    staged: str = ""
    adapter_bytes: int = 0

    @property
    def listed_accelerators(self) -> tuple[str, ...]:
        """Accelerators that the user listed; empty = none are."""
        chosen = self.spec.placement.accelerators
        return chosen if isinstance(chosen, tuple) else ()

    @property
    def count(self) -> int | None:
        """Accelerators of the replica; None = as many as it takes."""
        wanted = self.spec.placement.accelerators
        if isinstance(wanted, tuple):
            return self.spec.placement.accelerators_per_replica or len(wanted)
        if wanted == "auto":
            return self.stated.world if self.stated else None
        return wanted

    def is_own(self, release: str) -> bool:
        """Whether a claim is the model's own: of one of its releases, or only proposed yet."""
        name = self.spec.name
        return not release or (release.startswith(name) and release.rpartition(".v")[0] == name)

    @property
    def ram(self) -> int:
        """Bytes of RAM that the spec reserves for each seat; 0 = it states none."""
        stated = self.spec.placement.ram
        return 0 if stated == "auto" else int(stated)

    def ram_for(self, accelerator_type: str, claimed: int) -> int:
        """Bytes of RAM that go with so many bytes of accelerators of a type on one host."""
        return self.ram + self.engine.ram_on_accelerators(self.spec, accelerator_type, claimed)

    @property
    def spans_hosts(self) -> bool:
        """Whether one replica may, and can, run on several hosts."""
        wanted = self.spec.placement
        may = wanted.across_hosts or (wanted.hosts != "auto" and wanted.hosts > 1)
        return may and self.engine.spans_hosts

    @property
    def hosts(self) -> int:
        """How many hosts the user wants each replica to span; 0 = as few as it takes."""
        wanted = self.spec.placement.hosts
        return 0 if wanted == "auto" else wanted

    @property
    def must_span(self) -> bool:
        """Whether one host alone is not what the user wants."""
        return self.hosts > 1

    def host_counts(self, there: int) -> range:
        """Numbers of hosts, from two, that a replica may span where so many could take part."""
        most = min(there, MOST_HOSTS)
        if not self.hosts:
            return range(2, most + 1)
        return range(self.hosts, self.hosts + 1) if 1 < self.hosts <= most else range(0)

    @property
    def joined_by(self) -> Distributed:
        """What joins the hosts, if it spans several."""
        return self.engine.joined_by(self.spec)

    @property
    def may_overcommit(self) -> bool:
        """Whether accelerators may be taken that are too full; only those listed by hand."""
        return bool(self.listed_accelerators) and self.spec.placement.overcommit

    @property
    def within_limits(self) -> Request:
        """The same request, without leave to overcommit."""
        if not self.may_overcommit:
            return self
        limits = self.spec.placement.model_copy(update={"overcommit": False})
        return replace(self, spec=self.spec.model_copy(update={"placement": limits}))

    @property
    def on_cpu(self) -> bool:
        """Whether the user wants no accelerators."""
        return self.count == 0


@dataclass(frozen=True, slots=True)
class Subject:
    """The model to place.

    Attributes:
        spec: What the user wrote.
        profile: What the model is.
        memory: How much memory it takes; None = only a rough estimate is possible.
        staged: The model as hosts list what they have, `source@revision`.
        companion_bytes: Bytes of the files of its adapters and draft model, for an estimate.
        adapter_bytes: Bytes of the files of its adapters alone.
        measured: Measurements of earlier starts of its architecture, the newest first.
    """

    spec: ModelSpec
    profile: ModelProfile
    memory: MemoryModel | None = None
    staged: str = ""
    companion_bytes: int = 0
    adapter_bytes: int = 0
    measured: tuple[Measurement, ...] = ()

    def request(self, engine: EngineTraits, fleet: FleetSnapshot | None = None) -> Request:
        """What is to be placed when an engine serves the model.

        Args:
            engine: The engine.
            fleet: The hosts, which may have a default version of the engine.

        Raises:
            Failure: `BAD_SPEC` when the arguments contradict the accelerators that the spec wants.
        """
        spec, profile = self.spec, self.profile
        _require_consistent_sizes(self)
        wanted, ram = memory_request(spec, profile), spec.placement.ram
        stated = 0 if ram == "auto" else int(ram)
        request = Request(
            spec=spec,
            profile=profile,
            engine=engine,
            demand=Demand(_memory(self, engine, fleet), wanted),
            cpu_demand=CpuDemand(self.memory, profile, engine, wanted, stated),
            stated=stated_parallelism(spec.engine.arguments),
            staged=self.staged,
            adapter_bytes=self.adapter_bytes,
        )
        _require_possible(request)
        return request


def _require_consistent_sizes(subject: Subject) -> None:
    """The rules of the policy `baseline` refuse sizes that contradict each other or the model."""
    if by_baseline_rules(subject.spec):
        read_terms(subject.spec, subject.profile, subject.adapter_bytes)


def _require_possible(request: Request) -> None:
    spec, engine, stated = request.spec, request.engine, request.stated
    if request.must_span and not request.spans_hosts:
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.hosts: {engine.name} cannot run one replica on {request.hosts} hosts",
            suggestion="Set `engine.name: vllm`, or leave `placement.hosts` out.",
        )
    judged_by_rules = by_baseline_rules(spec) and request.listed_accelerators
    if stated and not judged_by_rules and request.count not in (None, 0, stated.world):
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.accelerators: {request.count}, but engine.args make {stated.world}"
            f" ({stated})",
            suggestion="Leave one of the two out.",
        )


def _memory(subject: Subject, engine: EngineTraits, fleet: FleetSnapshot | None) -> Memory:
    """The most exact memory model: predicted and corrected, estimated where the rules end."""
    spec, profile = subject.spec, subject.profile
    if not engine.predictable:
        claim = spec.memory.claim
        estimated = EstimatedMemory(profile, f"the engine is {engine.name}")
        return estimated if claim is None else StatedMemory(int(claim))
    if subject.memory is None:
        return EstimatedMemory(profile, "no tensor headers", subject.companion_bytes)
    known = ExactOrEstimatedMemory(subject.memory, profile, subject.companion_bytes)
    configured = fleet.engine_versions(engine.name).default_version if fleet else ""
    version = spec.engine.version or configured or engine.default_version
    given = spec.engine.arguments.words
    arguments = (*engine.memory_arguments(spec, subject.memory.options.lora), *given)
    return CalibratedMemory(known, profile, engine.name, version, arguments, subject.measured)
