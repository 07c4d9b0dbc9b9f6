"""The placement of a model, and the verdict on every host."""

from __future__ import annotations

from dataclasses import dataclass, field

from moorage.common.values import Origin, Value
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.need import CpuNeed, Need
from moorage.models.profile import ModelProfile
from moorage.models.quantizations import FilesChoice
from moorage.models.source import ResolvedModel
from moorage.placement.explanation import Verdict
from moorage.placement.role import Role
from moorage.spec import EngineName, ModelSpec, Policy, RuntimeName

CPU = "cpu"
"""Accelerator type of a seat without accelerators."""


RAY_SERVICES = 10
"""Ports at the start of Ray's range for its services; its workers take the others."""


class Links(Value):
    """Ports by which the hosts of a replica find each other; 0 = no such port.

    Attributes:
        rpc: Where data-parallel ranks report to the leader.
        master: Where ranks that span hosts meet.
        derived: Number of ports after `master` that the engine derives from it.
        own: First port of the engine's own on this host.
        joining: Where data-parallel ranks meet.
        ray: First and last port of Ray on this host; None = the engine joins the hosts itself.
    """

    rpc: int = 0
    master: int = 0
    derived: int = 0
    own: int = 0
    joining: int = 0
    ray: tuple[int, int] | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports to claim; of Ray's range only its services' (`ray.py` of vLLM)."""
        named = (self.rpc, self.master, self.own, self.joining)
        derived = range(self.master + 1, self.master + 1 + self.derived)
        services = range(self.ray[0], self.ray[0] + RAY_SERVICES) if self.ray else ()
        return (*(port for port in named if port), *derived, *services)


class Seat(Value):
    """Where one container of one replica runs, and the resources it holds there.

    Attributes:
        position: Index among the replica's hosts; the leader's is 0.
        host: Name of the host, or of the Ray cluster.
        accelerator_type: `cuda`, `rocm`, ...; `cpu` without accelerators.
        accelerators: Indexes, ascending.
        accelerator_bytes: Bytes claimed of each of them, in the same order.
        devices: Identifiers by which its container gets them, in the same order; empty = it gets
            them by their indexes.
        ram_bytes: Bytes of RAM claimed; on CPU also the limit.
        cores: Processor cores claimed; 0 = it shares the unclaimed cores.
        port: Serving port; on a follower, the first of the engine's own ports; 0 on a Ray cluster,
            which has one port for all models.
        services: Further ports of the engine, by use, such as `grpc`.
        links: Ports where its ranks meet, also those of other hosts; None = it needs none.
        utilization: Share of each accelerator's memory that the engine may take.
        tokens: Context that it serves.
        need: The parts of one accelerator's memory; None if not computed.
        layers: Layers on the accelerators while the others stay in RAM; 0 = all on accelerators.
        cache_bytes: Bytes of the KV cache on CPU; 0 = the engine decides.
        cpu_need: The parts of the RAM; None if it is only estimated.
        reason: Why the seat is here, with numbers.
    """

    replica: int
    role: Role = Role.LEADER
    position: int = 0
    host: str
    runtime: RuntimeName
    accelerator_type: str = CPU
    accelerators: tuple[int, ...] = ()
    accelerator_bytes: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    ram_bytes: int = 0
    cores: int = 0
    port: int
    services: dict[str, int] = {}
    links: Links | None = None
    utilization: float = 0.0
    tokens: int = 0
    tensor: int = 1
    pipeline: int = 1
    need: Need | None = None
    layers: int = 0
    cache_bytes: int = 0
    cpu_need: CpuNeed | None = None
    reason: str

    @property
    def place(self) -> str:
        """Host and port; a Ray cluster has no port of its own for a model."""
        return f"{self.host}:{self.port}" if self.port else self.host

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Claims that the ledger must reserve for this seat."""
        host, devices = self.host, self.devices or ("",) * len(self.accelerators)
        memory = zip(self.accelerators, self.accelerator_bytes, devices, strict=True)
        ports = (self.port, *self.services.values()) if self.port else ()
        links = [one for one in (self.links.ports if self.links else ()) if one != self.port]
        others = ((Resource.RAM, self.ram_bytes), (Resource.CORES, self.cores))
        return (
            *(
                Claim(host, Resource.ACCELERATOR, amount, index, device=device)
                for index, amount, device in memory
            ),
            *(Claim(host, resource, amount) for resource, amount in others if amount),
            *(Claim(host, Resource.PORT, 1, port) for port in ports),
            *(Claim(host, Resource.PORT, 1, port, links=True) for port in links),
        )


@dataclass(frozen=True, slots=True)
class HostShare:
    """The resources that a replica takes of one host.

    Attributes:
        accelerators: Indexes, ascending.
        accelerator_bytes: Bytes taken of each of them, in the same order.
        ram_bytes: Bytes of RAM taken; 0 = none.
    """

    host: str
    accelerators: tuple[int, ...]
    accelerator_bytes: tuple[int, ...]
    ram_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BaselineCandidate:
    """Hosts and accelerators for a whole replica, by the peer's rules.

    Attributes:
        accelerator_type: `cuda`, `rocm`, ...; one type for all shares.
        leader: Share of the host on which the replica answers.
        followers: The other hosts of the replica, in the order in which they were taken.
        overcommit: Whether it takes more than is free; only for accelerators that the user listed.
    """

    accelerator_type: str
    leader: HostShare
    followers: tuple[HostShare, ...] = ()
    overcommit: bool = False

    @property
    def shares(self) -> tuple[HostShare, ...]:
        """Every share, the leader's first."""
        return (self.leader, *self.followers)


class Ranking(Value):
    """The answer of the baseline's rules for the first replica.

    Attributes:
        needed: Bytes of accelerator memory that a replica needs in all, as the rules estimate it.
        candidates: All of the first strategy that found any, in fleet order.
        scores: One for each candidate, 0 to 100.
        messages: Why nothing fits, or what is overcommitted.
    """

    needed: int
    candidates: tuple[BaselineCandidate, ...] = ()
    scores: tuple[float, ...] = ()
    messages: tuple[str, ...] = ()


class Placement(Value):
    """The result of the step `place`.

    Attributes:
        engine_origin: `user`, or `derived` when the spec says `auto`.
        seats: One for each container; empty = the model fits nowhere.
        verdicts: One for each host of the fleet, in fleet order, for the replica that was refused,
            or the last one placed.
        considered: Candidates that the policy `baseline` weighed; None under other policies.
        shortage: The parts of the memory on the nearest miss; empty = it fits, or memory is not
            short.
        remedies: Changes that would make it fit, if it fits nowhere.
        terms: Names of the terms in the scores of the verdicts.
        stop_first: Release that must stop before this one can start, and why; empty = none.
        moved: Why a restored release is not where it ran before; empty = it is there, or it is not
            a restored release.
    """

    engine: EngineName
    engine_origin: Origin
    engine_reason: str
    policy: Policy = Policy.FITTED
    seats: tuple[Seat, ...]
    verdicts: tuple[Verdict, ...]
    terms: tuple[str, ...] = ()
    considered: Ranking | None = None
    shortage: str = ""
    remedies: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    stop_first: str = ""
    moved: str = ""

    @property
    def fits(self) -> bool:
        """Whether every replica has its seat."""
        return bool(self.seats)

    @property
    def predicted(self) -> dict[str, int]:
        """Bytes of one rank by the name of the memory term; empty if not computed."""
        need = next((seat.need for seat in self.seats if seat.need), None)
        return {term.name: term.bytes for term in need.terms} if need else {}

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all seats."""
        return tuple(claim for seat in self.seats for claim in seat.claims)

    def hosts_in(self, fleet: Fleet) -> tuple[Host, ...]:
        """The hosts of its seats, as the fleet describes them."""
        used = {seat.host for seat in self.seats}
        return tuple(host for host in fleet.hosts if host.name in used)


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A resolved and analyzed model.

    Attributes:
        files: The choice of its files, with reasons; None = there was nothing to choose.
    """

    spec: ModelSpec
    model: ResolvedModel
    profile: ModelProfile
    files: FilesChoice | None = field(default=None, kw_only=True)

    def placed(self, placement: Placement, snapshot: FleetSnapshot, release: str) -> Placed:
        """The same model with a place for one of its releases."""
        known = (self.spec, self.model, self.profile)
        return Placed(*known, placement, snapshot, release, files=self.files)


@dataclass(frozen=True, slots=True)
class Placed(Analyzed):
    """A model with a placement: everything that a launch plan needs except the image."""

    placement: Placement
    snapshot: FleetSnapshot
    release: str
