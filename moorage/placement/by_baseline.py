"""The policy `baseline`: the peer's rules decide, on the hosts that pass our filters.

Two things stay ours: what the gate would refuse is not proposed, and the claim is what is told to
the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from moorage.placement.baseline import BaselineRequest, Decision, ManualAccelerator, decide
from moorage.placement.baseline import Strategy as BaselineStrategy
from moorage.placement.baseline.terms import terms
from moorage.placement.candidate import Candidate, Share
from moorage.placement.demand import GRAIN
from moorage.placement.filters import Filters
from moorage.placement.fit import free_ports, misfits
from moorage.placement.links import joined, unjoinable
from moorage.placement.placement import Seat
from moorage.placement.request import Refused, Request
from moorage.placement.runtime import choose_runtime
from moorage.placement.snapshot import HostSnapshot
from moorage.placement.verdict import Refusal, Verdict
from moorage.placement.view import HostView
from moorage.spec import Mode, RuntimeName
from moorage.units import human_bytes

LONGEST_CONTEXT = 8192
"""Tokens at which the peer caps a context that nobody stated."""

CATEGORIES = {
    Mode.COMPLETION: "llm",
    Mode.EMBEDDING: "embedding",
    Mode.RERANKING: "reranker",
    Mode.CLASSIFICATION: "reranker",
    Mode.IMAGE_GENERATION: "image",
}


def place_by_baseline(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for one replica (none when nothing fits), and a verdict for each host."""
    hosts, refused = _filtered(request, views)
    asked = baseline_request(request)
    own = {c.release for host in hosts for c in host.claims if request.is_own(c.release)}
    decision = decide(asked, hosts, same_model=own)
    by_name = {host.name: host for host in hosts}
    seats: tuple[Seat, ...] = ()
    if decision.chosen is not None:
        seats = _seats(request, asked, decision.candidates[decision.chosen], by_name, replica)
        refused |= _not_joined(request, seats, by_name)
        seats = () if refused.keys() & {s.host for s in seats} else joined(request, seats, by_name)
        refused |= _refused_by_the_gate(request, seats, by_name)
        seats = () if any(seat.host in refused for seat in seats) else seats
    verdicts = refused | _verdicts(decision, [h for h in hosts if h.name not in refused])
    return seats, tuple(verdicts[view.host.name] for view in views)


def baseline_request(request: Request) -> BaselineRequest:
    """The request in the words of the baseline."""
    spec, profile = request.spec, request.profile
    by_hand = [identity.rsplit(":", 2) for identity in request.by_hand]
    return BaselineRequest(
        weight_bytes=profile.weight_bytes,
        claim_override=None if spec.memory.claim is None else int(spec.memory.claim),
        categories=(CATEGORIES.get(profile.mode, "llm"),),
        architectures=profile.architectures,
        attention_heads=profile.attention_heads,
        vision_heads=profile.vision_heads,
        vocabulary=profile.vocab_size,
        parameters=_parameters(request),
        engine_version=spec.engine.version,
        manual=tuple(ManualAccelerator(host, kind, int(index)) for host, kind, index in by_hand),
        replicas=spec.replicas,
        distributed_allowed=request.spans_hosts,
        strategy=BaselineStrategy(spec.placement.strategy.value),
    )


def _parameters(request: Request) -> tuple[str, ...]:
    """The user's arguments; a wished number of accelerators becomes a tensor-parallel size."""
    written = request.spec.engine.args
    if request.by_hand or request.stated or not request.count:
        return written
    return (*written, f"--tensor-parallel-size={request.count}")


def _filtered(
    request: Request, views: Sequence[HostView]
) -> tuple[list[HostSnapshot], dict[str, Verdict]]:
    """The hosts that pass the filters, with the accelerators that the engine can use."""
    filters = Filters(request)
    hosts, refused = [], {}
    for view in views:
        try:
            passed = filters.check(view)
            if not passed.groups:
                raise Refused(Refusal.NO_ACCELERATOR, "the baseline places on accelerators only")
        except Refused as reason:
            refused[view.host.name] = reason.verdict(view.host.name)
            continue
        types = {kind.type for kind in passed.groups}
        items = tuple(item for item in view.host.accelerators if item.type in types)
        hosts.append(view.host.model_copy(update={"accelerators": items}))
    return hosts, refused


def _seats(
    request: Request,
    asked: BaselineRequest,
    candidate: Candidate,
    hosts: dict[str, HostSnapshot],
    replica: int,
) -> tuple[Seat, ...]:
    share = terms(asked).utilization
    return tuple(
        _seat(request, candidate, part, hosts[part.host], share, replica)
        for part in candidate.shares
    )


def _seat(
    request: Request,
    candidate: Candidate,
    part: Share,
    host: HostSnapshot,
    share: float,
    replica: int,
) -> Seat:
    totals = {item.index: item.memory_total for item in host.accelerators}
    pairs = zip(part.accelerators, part.accelerator_bytes, strict=True)
    taken = min(claimed / totals[index] for index, claimed in pairs)
    wish, stated, port = request.demand.wish, request.stated, request.spec.port
    over = "; more than there is, as the accelerators were listed" * candidate.overcommit
    return Seat(
        replica=replica,
        host=host.name,
        runtime=_runtime(request, host, candidate.accelerator_type),
        accelerator_type=candidate.accelerator_type,
        accelerators=part.accelerators,
        accelerator_bytes=part.accelerator_bytes,
        ram_bytes=part.ram_bytes,
        port=free_ports(host, 1)[0] if port == "auto" else port,
        utilization=share or floor(taken * GRAIN) / GRAIN,
        tokens=wish.context if wish.stated else min(wish.context, LONGEST_CONTEXT),
        tensor=stated.tensor if stated else len(candidate.leader.accelerators),
        pipeline=stated.pipeline if stated else len(candidate.shares),
        reason=f"by the baseline's rules: {human_bytes(sum(part.accelerator_bytes))} of"
        f" {len(part.accelerators)} accelerators{over}",
    )


def _runtime(request: Request, host: HostSnapshot, kind: str) -> RuntimeName:
    choice = choose_runtime(request.spec, request.engine, host, kind)
    if isinstance(choice, str):  # the filters asked the same question
        raise AssertionError(choice)
    return choice.name


def _not_joined(
    request: Request, seats: Sequence[Seat], hosts: dict[str, HostSnapshot]
) -> dict[str, Verdict]:
    """The baseline asks nothing of the hosts that it joins."""
    if len(seats) < 2:
        return {}
    reasons = {seat.host: unjoinable(request, hosts[seat.host]) for seat in seats}
    return {
        name: Verdict(name, reason.refusal, note=reason.note)
        for name, reason in reasons.items()
        if reason
    }


def _refused_by_the_gate(
    request: Request, seats: Sequence[Seat], hosts: dict[str, HostSnapshot]
) -> dict[str, Verdict]:
    """The baseline does not look at what is really in use, nor at RAM by hand; the gate does."""
    found = {}
    for seat in seats:
        reasons = misfits(
            hosts[seat.host], seat.claims, overcommit=request.spec.placement.overcommit
        )
        if reasons:
            found[seat.host] = Verdict(
                seat.host, Refusal.ACCELERATOR_MEMORY, note="; ".join(reasons)
            )
    return found


def _verdicts(decision: Decision, hosts: Sequence[HostSnapshot]) -> dict[str, Verdict]:
    best: dict[str, float] = {}
    for candidate, score in zip(decision.candidates, decision.scores, strict=True):
        for part in candidate.shares:
            best[part.host] = max(score, best.get(part.host, 0.0))
    why = " ".join(decision.messages) or "another strategy or host was preferred"
    return {
        host.name: Verdict(host.name, score=best[host.name])
        if host.name in best
        else Verdict(host.name, Refusal.ACCELERATOR_MEMORY, note=why)
        for host in hosts
    }
