"""What is to be placed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.models.profile import ModelProfile
from moorage.placement.cpu_demand import CpuDemand
from moorage.placement.demand import Demand
from moorage.placement.engine import EngineTraits
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.parallelism import Parallelism
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
        demand: What it asks of accelerators.
        on_processors: What it asks of RAM where processors run the engine.
        stated: Parallelism that the user's arguments fix; None = it is derived.
        staged: The model as hosts list what they have, `source@revision`.
        adapter_bytes: Bytes of the files of its LoRA adapters.
    """

    spec: ModelSpec
    profile: ModelProfile
    engine: EngineTraits
    demand: Demand
    on_processors: CpuDemand
    stated: Parallelism | None = None
    staged: str = ""
    adapter_bytes: int = 0

    @property
    def by_hand(self) -> tuple[str, ...]:
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
        """Bytes of RAM that the user wants reserved for each seat; 0 = nothing is said."""
        stated = self.spec.placement.ram
        return 0 if stated == "auto" else int(stated)

    def ram_beside(self, kind: AcceleratorKind, claimed: int) -> int:
        """Bytes of RAM that go with so many bytes of accelerators on one host."""
        return self.ram_with(kind.type, claimed)

    def ram_with(self, accelerator_type: str, claimed: int) -> int:
        """The same, for accelerators of a type."""
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
        return bool(self.by_hand) and self.spec.placement.overcommit

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
