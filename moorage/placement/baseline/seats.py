"""Turns a candidate of the rules into seats, or says why the gate refuses it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

from moorage.common.refusal import Reason
from moorage.common.units import human_bytes
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.memory.need import STEPS
from moorage.placement.baseline.terms import Terms
from moorage.placement.explanation import Verdict
from moorage.placement.fit import misfits
from moorage.placement.links import join_refusal, join_seats
from moorage.placement.many_hosts import is_possible
from moorage.placement.parallelism import split_over_hosts
from moorage.placement.placement import BaselineCandidate, HostShare, Seat
from moorage.placement.request import Request
from moorage.placement.runtime import choose_runtime, hardware_of_seat
from moorage.placement.seating import identifiers, ports_on
from moorage.spec import Distributed

OVERCOMMITTED = "more than there is; `placement.overcommit` allows it"


@dataclass(frozen=True, slots=True)
class Seating:
    """Makes the seats of one replica from candidates."""

    request: Request
    terms: Terms
    hosts: Mapping[str, HostSnapshot]
    replica: int

    def seats_of(self, candidate: BaselineCandidate) -> tuple[tuple[Seat, ...], dict[str, Verdict]]:
        """The seats, or no seats and the reason by host.

        The gate adds checks that the peer lacks: whether hosts can be joined, memory really in use,
        and RAM by ratio.
        """
        if refused := self._missing(candidate) or self._unjoinable(candidate):
            return (), refused
        seats = [self._seat(candidate, part) for part in candidate.shares]
        linked = join_seats(self.request, seats, self.hosts)
        refused = {seat.host: one for seat in linked if (one := self._misfit(seat, candidate))}
        return () if refused else linked, refused

    def _missing(self, candidate: BaselineCandidate) -> dict[str, Verdict]:
        """Verdicts on hosts that lack listed accelerators, which the peer does not check."""
        kind, refused = candidate.accelerator_type, {}
        for part in candidate.shares:
            there = {i.index for i in self.hosts[part.host].accelerators if i.type == kind}
            missing = [f"{kind}:{index}" for index in part.accelerators if index not in there]
            if missing or not part.accelerators:
                note = f"{', '.join(missing)} is not there" if missing else "gives no accelerator"
                refused[part.host] = Verdict(part.host, Reason.NO_ACCELERATOR, note)
        return refused

    def _unjoinable(self, candidate: BaselineCandidate) -> dict[str, Verdict]:
        if len(candidate.shares) < 2:
            return {}
        request, names = self.request, [share.host for share in candidate.shares]
        counts = [len(share.accelerators) for share in candidate.shares]
        if not request.engine.spans_hosts:
            note = f"{request.engine.name} cannot run one replica on {len(names)} hosts"
            return {name: Verdict(name, Reason.ONE_HOST_ONLY, note) for name in names}
        if request.joined_by != Distributed.RAY and not is_possible(request.stated, counts):
            note = f"without Ray, hosts of {counts} accelerators cannot share the ranks"
            return {name: Verdict(name, Reason.NOT_JOINABLE, note) for name in names}
        if note := self._too_small_for_copies(candidate):
            return {name: Verdict(name, Reason.ACCELERATOR_MEMORY, note) for name in names}
        reasons = {name: join_refusal(request, self.hosts[name]) for name in names}
        return {name: Verdict.of(name, reason) for name, reason in reasons.items() if reason}

    def _too_small_for_copies(self, candidate: BaselineCandidate) -> str:
        """Why natively joined hosts cannot hold a copy each, as the peer starts; empty = they can.

        The peer spreads one model over them.
        """
        if self.request.stated or self.request.joined_by == Distributed.RAY:
            return ""
        tensor, claim = self._split(candidate)[0], self.terms.claim
        room = min(sum(share.accelerator_bytes[:tensor]) for share in candidate.shares)
        if not 0 < room < claim:
            return ""
        return (
            f"without Ray, each {tensor} accelerators hold a copy of the model, which takes"
            f" {human_bytes(claim)} of their {human_bytes(room)}; state the sizes in engine.args,"
            f" such as -tp {tensor} -pp {len(candidate.shares)}"
        )

    def _seat(self, candidate: BaselineCandidate, part: HostShare) -> Seat:
        request, host, kind = self.request, self.hosts[part.host], candidate.accelerator_type
        claims = self._claims(candidate, part)
        tensor, pipeline = self._split(candidate)
        own = {item.index: item for item in host.accelerators if item.type == kind}
        chosen = [own[index] for index in part.accelerators]
        runtime = choose_runtime(
            request.spec, request.engine, hardware_of_seat(host, kind, part.accelerators)
        )
        over = "; more than there is, as the accelerators were listed" * candidate.overcommit
        return Seat(
            replica=self.replica,
            host=host.name,
            runtime=runtime,
            accelerator_type=kind,
            accelerators=part.accelerators,
            accelerator_bytes=claims,
            devices=identifiers(request, host, runtime, chosen),
            ram_bytes=request.ram_for(kind, sum(claims)),
            **ports_on(request, host),
            utilization=self.terms.utilization or _utilization(chosen, claims),
            tokens=request.demand.request.capped_context,
            tensor=tensor,
            pipeline=pipeline,
            reason=f"by the baseline's rules: {human_bytes(sum(claims))} of"
            f" {len(part.accelerators)} accelerators{over}",
        )

    def _claims(self, candidate: BaselineCandidate, part: HostShare) -> tuple[int, ...]:
        """Bytes to claim of each accelerator.

        Over several hosts the peer claims 0 if the engine takes no share; we claim equal parts.
        """
        if any(part.accelerator_bytes):
            return part.accelerator_bytes
        number = sum(len(share.accelerators) for share in candidate.shares)
        return (-(-self.terms.claim // number),) * len(part.accelerators)

    def _split(self, candidate: BaselineCandidate) -> tuple[int, int]:
        stated = self.request.stated
        if stated:
            return stated.tensor, stated.pipeline
        counts = [len(share.accelerators) for share in candidate.shares]
        return split_over_hosts(counts, natively=self.request.joined_by != Distributed.RAY)

    def _misfit(self, seat: Seat, candidate: BaselineCandidate) -> Verdict | None:
        allowed = self.request.may_overcommit
        if candidate.overcommit and not allowed:
            return Verdict(seat.host, Reason.ACCELERATOR_MEMORY, note=OVERCOMMITTED)
        reasons = misfits(self.hosts[seat.host], seat.claims, overcommit=allowed)
        if not reasons:
            return None
        of_ram = all(reason.startswith("RAM") for reason in reasons)
        refusal = Reason.RAM if of_ram else Reason.ACCELERATOR_MEMORY
        return Verdict(seat.host, refusal, note="; ".join(reasons))


def _utilization(chosen: Sequence[Accelerator], claims: Sequence[int]) -> float:
    """The claims as a share of accelerator memory, rounded down to the engine's steps."""
    pairs = zip(chosen, claims, strict=True)
    claimed = min(amount / item.memory_total for item, amount in pairs)
    return max(1, floor(claimed * STEPS)) / STEPS
