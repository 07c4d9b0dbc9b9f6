"""Placement by our own policies: a list of steps that can be read aloud.

Filter the hosts, try the strategies in order, score what the first successful one offers, take the
best, and tell every other host why not.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Refusal
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.baseline.place import place_by_rules, rank_by_rules
from moorage.placement.baseline.terms import by_baseline_rules
from moorage.placement.candidates import Candidate, ScoredCandidate
from moorage.placement.explanation import Verdict, troubles
from moorage.placement.filters import Filters
from moorage.placement.placement import Placement, Seat
from moorage.placement.refusals import refuse_all, with_replica_note
from moorage.placement.request import Request
from moorage.placement.scores import WEIGHTS, best, score_all
from moorage.placement.seating import seats_of, with_seats
from moorage.placement.strategies import strategies
from moorage.placement.view import HostView, view_of


def place(request: Request, fleet: FleetSnapshot, origin: Origin, why: str) -> Placement:
    """Choose hosts, accelerators and ports for every replica. Nothing is reserved yet.

    Args:
        request: What is to be placed.
        fleet: The hosts with all claims.
        origin: Who chose the engine.
        why: The reason of that choice.

    Returns:
        A placement with the seats of all replicas, or with none and a refusal for each host.
    """
    views, by_rules = [view_of(host) for host in fleet.hosts], by_baseline_rules(request.spec)
    seats, verdicts = place_replicas(request, views)
    return Placement(
        engine=request.engine.name,
        engine_origin=origin,
        engine_reason=why,
        policy=request.spec.placement.policy,
        seats=seats,
        verdicts=verdicts,
        troubles=troubles(fleet.hosts),
        terms=() if by_rules else tuple(WEIGHTS[request.spec.placement.strategy]),
        considered=rank_by_rules(request, _filtered(request, views)[0]) if by_rules else None,
    )


def place_replicas(
    request: Request, views: Sequence[HostView]
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for all replicas, or none; the verdicts of the replica that was looked at last."""
    seats: list[Seat] = []
    verdicts: tuple[Verdict, ...] = ()
    place_one = _place_by_baseline if by_baseline_rules(request.spec) else place_replica
    for replica in range(request.spec.replicas):
        found, verdicts = place_one(request, views, replica)
        if not found:
            return (), verdicts
        seats += found
        views = with_seats(views, found)
    return tuple(seats), verdicts


def place_replica(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for one replica (none when nothing fits), and a verdict for each host."""
    able, refused = _filtered(request, views)
    scored = score_all(request, _first_offers(request, able), able)
    verdicts = _verdicts(request, views, able, refused, scored)
    if replica:
        verdicts = tuple(map(with_replica_note, views, verdicts))
    if not scored:
        return (), verdicts
    return seats_of(request, best(request, scored), replica), verdicts


def _place_by_baseline(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    able, refused = _filtered(request, views)
    seats, verdicts = place_by_rules(request, able, replica)
    verdicts |= refused
    return seats, tuple(verdicts[view.host.name] for view in views)


def _filtered(
    request: Request, views: Sequence[HostView]
) -> tuple[list[HostView], dict[str, Verdict]]:
    filters = Filters(request)
    able, refused, check = [], {}, filters.check
    for view in views:
        try:
            able.append(check(view))
        except Refusal as reason:
            refused[view.host.name] = Verdict.of(view.host.name, reason)
    return able, refused


def _first_offers(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    for strategy in strategies(request):
        if candidates := strategy(request, views):
            # A host on which the whole context fits is never passed over for one where it does not.
            return [candidate for candidate in candidates if candidate.is_full] or candidates
    return []


def _verdicts(
    request: Request,
    views: Sequence[HostView],
    able: Sequence[HostView],
    refused: dict[str, Verdict],
    scored: Sequence[ScoredCandidate],
) -> tuple[Verdict, ...]:
    """One verdict a host, in the order of the fleet; a host with several offers by its best."""
    found = refused
    for one in scored:
        rooms = one.candidate.rooms
        for at, view in enumerate(one.candidate.views):
            host = view.host.name
            other = found.get(host)
            if other is None or other.score < one.score:
                found[host] = _offered(host, one, rooms[at])
    if len(found) < len(views):
        rest = [view for view in able if view.host.name not in found]
        found.update(refuse_all(request, rest, scored[0].candidate if scored else None))
    return tuple([found[view.host.name] for view in views])


def _offered(host: str, one: ScoredCandidate, room: list[int]) -> Verdict:
    count = len(room) if one.candidate.kind else 0
    needed, left = one.candidate.needed, room[-1]
    note = "more than is free, as the spec allows" if count and needed > left else ""
    return Verdict(host, None, note, needed, left, count, 0, (), one.score, one.points)
