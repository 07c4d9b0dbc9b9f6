"""The policy `baseline`: the peer's rules decide, on the hosts that pass our filters.

Two things stay ours: what the gate would refuse is not proposed, and the claim is what is told to
the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline import BaselineRequest, Decision, decide
from moorage.placement.baseline.estimate import memory_claim
from moorage.placement.baseline.terms import terms
from moorage.placement.baseline_request import baseline_request
from moorage.placement.baseline_seats import Seating
from moorage.placement.explanation import Verdict
from moorage.placement.filters import Filters
from moorage.placement.placement import Considered, Seat
from moorage.placement.request import Request
from moorage.placement.view import HostView, kind_of


def place_by_baseline(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for one replica (none when nothing fits), and a verdict for each host."""
    hosts, refused = _filtered(request, views)
    decision = _decided(request, hosts)
    worked_out = terms(_asked(request))
    seating = Seating(request, worked_out, {host.name: host for host in hosts}, replica)
    seats, at_gate = _seated(seating, decision)
    verdicts = {**_verdicts(decision, hosts), **at_gate, **refused}
    if not seats:
        verdicts = {name: _without_others(one) for name, one in verdicts.items()}
    return seats, tuple(verdicts[view.host.name] for view in views)


def considered(request: Request, views: Sequence[HostView]) -> Considered:
    """What the rules weighed for the first replica, on the hosts that pass the filters."""
    hosts, _ = _filtered(request, views)
    decision = _decided(request, hosts)
    return Considered(
        needed=memory_claim(_asked(request)),
        candidates=decision.candidates,
        scores=decision.scores,
        messages=decision.messages,
    )


def _asked(request: Request) -> BaselineRequest:
    return baseline_request(request.spec, request.profile, request.engine, request.adapter_bytes)


def _decided(request: Request, hosts: Sequence[HostSnapshot]) -> Decision:
    claims = [claim for host in hosts for claim in host.claims]
    own = {claim.release for claim in claims if request.is_own(claim.release)}
    spanning = {claim.release for claim in claims if claim.links}
    return decide(_asked(request), hosts, same_model=own, distributed=spanning)


def _seated(seating: Seating, decision: Decision) -> tuple[tuple[Seat, ...], dict[str, Verdict]]:
    """The seats of the best candidate that the gate lets through, and who was refused there."""
    refused: dict[str, Verdict] = {}
    scores = decision.scores
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    for at in order:
        found = seating.seats_of(decision.candidates[at])
        if isinstance(found, tuple):
            taken = {seat.host for seat in found}
            return found, {name: one for name, one in refused.items() if name not in taken}
        refused = {**found, **refused}
    return (), refused


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
                raise Refusal(Reason.NO_ACCELERATOR, "the baseline places on accelerators only")
        except Refusal as reason:
            refused[view.host.name] = Verdict.of(view.host.name, reason)
            continue
        items = tuple(
            item
            for item in view.host.accelerators
            if kind_of(item.type, item.name, item.memory_total) in passed.groups
        )
        hosts.append(view.host.model_copy(update={"accelerators": items}))
    return hosts, refused


def _verdicts(decision: Decision, hosts: Sequence[HostSnapshot]) -> dict[str, Verdict]:
    best: dict[str, float] = {}
    for candidate, score in zip(decision.candidates, decision.scores, strict=True):
        for part in candidate.shares:
            best[part.host] = max(score, best.get(part.host, 0.0))
    why = " ".join(decision.messages) or "another strategy or host was preferred"
    return {
        host.name: Verdict(host.name, score=best[host.name])
        if host.name in best
        else Verdict(host.name, Reason.ACCELERATOR_MEMORY, note=why)
        for host in hosts
    }


def _without_others(verdict: Verdict) -> Verdict:
    """Where nothing fits, a host that could take part is refused for the others."""
    if verdict.refusal:
        return verdict
    note = "could take part, but the hosts that it would be joined with cannot"
    return Verdict(verdict.host, Reason.TOO_FEW_HOSTS, note)
