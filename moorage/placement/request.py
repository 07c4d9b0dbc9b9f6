"""The request to place a replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import lcm

from moorage.common.failures import Cause, Failure
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.gguf import GgufMemory
from moorage.models.profile import ModelProfile
from moorage.placement.baseline.terms import Key, by_baseline_rules, listed_accelerators, read_terms
from moorage.placement.cpu_demand import CpuDemand
from moorage.placement.demand import Demand, Split, Subject
from moorage.placement.engine import EngineTraits
from moorage.placement.parallelism import Parallelism
from moorage.placement.runtime import Hardware, ImagesThere
from moorage.spec import Distributed, ModelSpec

MOST_HOSTS = 64
"""Most hosts that a replica spans."""


@dataclass(frozen=True, slots=True)
class Request:
    """One replica to place; `joined_by` and `tensor_divisors` are those of its engine.

    Attributes:
        stated: The parallelism that the user's arguments state; None = they state none.
        ram_of_layers: Bytes of RAM for layers that are not on its accelerators.
        ram_of_checkpoints: Bytes of RAM for earlier states of its context.
        layers: Layers on its accelerators; 0 = all.
        shares_image_with: The hardware of a container of the same release; None = there is none
            yet.
    """

    subject: Subject
    engine: EngineTraits
    demand: Demand
    cpu_demand: CpuDemand
    images: ImagesThere
    joined_by: Distributed
    stated: Parallelism | None = None
    tensor_divisors: Mapping[str, int] = field(default_factory=dict)
    ram_of_layers: int = 0
    ram_of_checkpoints: int = 0
    layers: int = 0
    shares_image_with: Hardware | None = None

    @property
    def spec(self) -> ModelSpec:
        """The model's spec."""
        return self.subject.spec

    @property
    def profile(self) -> ModelProfile:
        """The model's profile."""
        return self.subject.profile

    def with_placement(self, **changes: object) -> Request:
        """The same request with other fields of `placement` in its spec."""
        return self.with_spec(placement=self.spec.placement.model_copy(update=changes))

    def with_spec(self, **changes: object) -> Request:
        """The same request with other fields in its spec that do not change its demand."""
        spec = self.spec.model_copy(update=changes)
        return replace(self, subject=replace(self.subject, spec=spec))

    @property
    def listed_accelerators(self) -> tuple[Key, ...]:
        """Accelerators that the user listed; empty = none."""
        return listed_accelerators(self.spec)

    @property
    def count(self) -> int | None:
        """Accelerators of the replica; None = as many as it takes."""
        wanted = self.spec.placement.accelerators
        if isinstance(wanted, tuple):
            return self.spec.placement.accelerators_per_replica or len(wanted)
        if wanted == "auto":
            return self.stated.world if self.stated else None
        return wanted

    @property
    def stated_split(self) -> Split | None:
        """How the user's arguments split the model; None = they leave it open."""
        if self.stated is None:
            return None
        data = self.stated.data if self.engine.copies_share_experts else 1
        return Split(self.stated.tensor, self.stated.pipeline, data)

    @property
    def tensor_step(self) -> int:
        """The smallest tensor-parallel size; every other one is a multiple of it."""
        return lcm(*self.tensor_divisors.values())

    def derived_split(self, count: int, hosts: int = 1) -> Split | None:
        """How `count` accelerators on each of `hosts` hosts split the model; None = they cannot.

        Each host is a pipeline stage, unless its accelerators are too few for the tensor-parallel
        ranks: then the ranks span all hosts.
        """
        for split in (Split(count, hosts), Split(count * hosts)):
            if split.tensor % self.tensor_step == 0:
                return split
        return None

    def is_own(self, release: str) -> bool:
        """Whether a claim is the model's own: of one of its releases, or of this proposal ("")."""
        name = self.spec.name
        return not release or (release.startswith(name) and release.rpartition(".v")[0] == name)

    def ram_for(self, accelerator_type: str, claimed: int) -> int:
        """Bytes of RAM that go with `claimed` bytes of accelerators of a type on one host."""
        ram = self.subject.ram + self.ram_of_layers + self.ram_of_checkpoints
        ram += self.engine.ram_asleep(self.spec, self.profile)
        return ram + self.engine.ram_on_accelerators(self.spec, accelerator_type, claimed)

    @property
    def spans_hosts(self) -> bool:
        """Whether the spec allows, and the engine supports, one replica on several hosts."""
        wanted = self.spec.placement
        may = wanted.across_hosts or (wanted.hosts != "auto" and wanted.hosts > 1)
        return may and self.engine.spans_hosts

    @property
    def hosts(self) -> int:
        """How many hosts the user wants each replica to span; 0 = as few as it takes."""
        wanted = self.spec.placement.hosts
        if wanted != "auto":
            return wanted
        return self.stated.hosts if self.stated and not by_baseline_rules(self.spec) else 0

    @property
    def must_span(self) -> bool:
        """Whether the user requires several hosts for each replica."""
        return self.hosts > 1

    def host_counts(self, there: int) -> range:
        """Numbers of hosts, from two, that a replica may span if `there` hosts could take part."""
        most = min(there, MOST_HOSTS)
        if not self.hosts:
            return range(2, most + 1)
        return range(self.hosts, self.hosts + 1) if 1 < self.hosts <= most else range(0)

    @property
    def may_overcommit(self) -> bool:
        """Whether accelerators may be overcommitted; only those that the user listed."""
        return bool(self.listed_accelerators) and self.spec.placement.overcommit

    @property
    def divisible_layers(self) -> int:
        """Layers of which some may stay in RAM; 0 = all must be on accelerators."""
        memory = self.subject.memory
        may = self.spec.placement.partial_offload and self.engine.offloads_layers
        return memory.layers if may and isinstance(memory, GgufMemory) else 0

    def with_layers(self, layers: int) -> Request:
        """The same request with `layers` layers on accelerators, and the shortest context."""
        memory, wanted = self.subject.memory, self.demand.request
        assert isinstance(memory, GgufMemory)
        wanted = replace(wanted, context=wanted.least_context, stated=True)
        part = memory.with_layers(layers)
        return replace(
            self,
            demand=Demand(part.need, wanted),
            ram_of_layers=part.ram_of_layers(wanted.context, wanted.concurrency),
            layers=layers,
        )

    @property
    def within_limits(self) -> Request:
        """The same request, with overcommitment and partial offload forbidden."""
        if not (self.may_overcommit or self.divisible_layers):
            return self
        return self.with_placement(overcommit=False, partial_offload=False)

    @property
    def on_cpu(self) -> bool:
        """Whether the user wants no accelerators."""
        return self.count == 0


def request_for(
    subject: Subject, engine: EngineTraits, fleet: FleetSnapshot | None = None
) -> Request:
    """The request to place a model on an engine.

    Raises:
        Failure: `BAD_SPEC` when the arguments contradict the accelerators that the spec wants.
    """
    spec = subject.spec
    if by_baseline_rules(spec):
        # Raise for sizes that contradict each other or the model.
        read_terms(spec, subject.profile, subject.adapter_bytes)
    demand, memory = subject.demand(engine, fleet), subject.memory
    checkpoints = 0
    if engine.offloads_layers and isinstance(memory, GgufMemory):
        wanted = demand.request
        checkpoints = memory.ram_of_checkpoints(wanted.context, wanted.concurrency)
    request = Request(
        subject=subject,
        engine=engine,
        demand=demand,
        cpu_demand=CpuDemand(subject, engine, demand.request),
        images=ImagesThere(spec, engine),
        joined_by=engine.joined_by(spec),
        stated=engine.parallelism(spec),
        tensor_divisors=engine.tensor_divisors(spec),
        ram_of_checkpoints=checkpoints,
    )
    _require_possible(request)
    return request


def _require_possible(request: Request) -> None:
    spec, engine, stated = request.spec, request.engine, request.stated
    if stated and stated.hosts and not (request.spans_hosts or by_baseline_rules(spec)):
        # vLLM would wait for the other ranks until its start times out.
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {stated.data_local} of {stated.data} data-parallel ranks on each host"
            f" take {stated.hosts} hosts",
            suggestion="Leave --data-parallel-size-local out, or set `placement.across_hosts`.",
        )
    if request.must_span and not request.spans_hosts:
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.hosts: {engine.name} cannot run one replica on {request.hosts} hosts",
            suggestion="Set `engine.name: vllm`, or leave `placement.hosts` out.",
        )
    _require_divisors(request)
    judged_by_rules = by_baseline_rules(spec) and request.listed_accelerators
    if stated and not judged_by_rules and request.count not in (None, 0, stated.world):
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.accelerators: {request.count}, but engine.args make {stated.world}"
            f" ({stated})",
            suggestion="Leave one of the two out.",
        )


def _require_divisors(request: Request) -> None:
    """Raise `BAD_SPEC` if a size does not divide the stated tensor-parallel size or number."""
    stated, count = request.stated, request.count
    for option, size in request.tensor_divisors.items():
        if stated and stated.tensor % size:
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {option} {size} does not divide {stated.tensor} tensor-parallel"
                " ranks",
                suggestion="Make the tensor-parallel size a multiple of it, or leave it out: it is"
                " derived from the placement.",
            )
        if not stated and count and count % size:
            raise Failure(
                Cause.BAD_SPEC,
                f"placement.accelerators: {count} are no multiple of {option} {size} in"
                " engine.args",
                suggestion=f"Take a multiple of {size}, or leave one of the two out.",
            )
