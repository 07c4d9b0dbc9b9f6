"""Placement by our own policies: a list of steps that can be read aloud.

Filter the hosts, try the strategies in order, score what the first successful one offers, take the
best, and tell every other host why not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from moorage.common.refusal import Refusal
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.baseline_request import by_baseline_rules
from moorage.placement.by_baseline import considered, place_by_baseline
from moorage.placement.demand import Split
from moorage.placement.explain import troubles
from moorage.placement.filters import Filters
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.many_hosts import many_hosts
from moorage.placement.offer import Offer, Scored
from moorage.placement.on_cpu import on_cpu, on_many_cpus
from moorage.placement.one_host import one_host
from moorage.placement.overcommit import overcommitted
from moorage.placement.placement import Placement, Seat
from moorage.placement.refusals import beside_replicas, refuse_all
from moorage.placement.request import Request
from moorage.placement.scores import WEIGHTS, score_all
from moorage.placement.seating import seats_of, tokens_on, with_seats
from moorage.placement.verdict import Verdict
from moorage.placement.view import HostView, look_at

Strategy = Callable[[Request, Sequence[HostView]], list[Offer]]

DIGITS = 9
"""Scores are compared to so many digits: beyond, they differ by the order of additions."""

ALIKE = 2 * 10**-DIGITS
"""Scores that are further apart than this differ in their digits."""


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
    views, by_rules = [look_at(host) for host in fleet.hosts], by_baseline_rules(request.spec)
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
        considered=considered(request, views) if by_rules else None,
    )


def place_replicas(
    request: Request, views: Sequence[HostView]
) -> tuple[tuple[Seat, ...], tuple[Verdict, ...]]:
    """Seats for all replicas, or none; the verdicts of the replica that was looked at last."""
    seats: list[Seat] = []
    verdicts: tuple[Verdict, ...] = ()
    place_one = place_by_baseline if by_baseline_rules(request.spec) else place_replica
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
        verdicts = tuple(map(beside_replicas, views, verdicts))
    if not scored:
        return (), verdicts
    return seats_of(request, _best(request, scored), replica), verdicts


def strategies(request: Request) -> tuple[Strategy, ...]:
    """In order; the first that offers anything decides. Selection by hand is a filter before."""
    alone, spans = not request.must_span, request.spans_hosts
    table: tuple[tuple[bool, Strategy], ...] = (
        (alone and not request.on_cpu, one_host),
        (spans and not request.on_cpu, many_hosts),
        (request.may_overcommit, overcommitted),
        (alone and not request.count, on_cpu),
        (spans and not request.count, on_many_cpus),
    )
    return tuple(strategy for concerns, strategy in table if concerns)


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


def _first_offers(request: Request, views: Sequence[HostView]) -> list[Offer]:
    for strategy in strategies(request):
        if offers := strategy(request, views):
            # A host on which the whole context fits is never passed over for one where it does not.
            return [offer for offer in offers if offer.is_full] or offers
    return []


def _best(request: Request, scored: Sequence[Scored]) -> Offer:
    """The highest score; where the context is cut, the longest, then most room; then the tie."""
    seed = request.spec.placement.seed
    near: Iterable[int] = range(len(scored))
    reach: dict[tuple[AcceleratorKind | None, Split], int] = {}
    if scored[0].offer.is_full:
        top = max([one.score for one in scored]) - ALIKE
        near = [at for at, one in enumerate(scored) if one.score > top]
    else:
        reach = _reach(request, scored)

    def rank(at: int) -> tuple[int, int, float, int]:
        one, offer = scored[at], scored[at].offer
        tie = -at if seed is None else _chance(seed, offer.views[0].host.name)
        cut = (0, 0) if offer.is_full else (reach[offer.kind, offer.split], offer.budget)
        return (*cut, round(one.score, DIGITS), tie)

    return scored[max(near, key=rank)].offer


def _reach(
    request: Request, scored: Sequence[Scored]
) -> dict[tuple[AcceleratorKind | None, Split], int]:
    """By kind and split the longest context on the accelerators, or in the RAM, with most room."""
    most: dict[tuple[AcceleratorKind | None, Split], Offer] = {}
    for one in scored:
        key, offer = (one.offer.kind, one.offer.split), one.offer
        if not offer.is_full and (key not in most or offer.budget > most[key].budget):
            most[key] = offer
    return {key: tokens_on(request, offer) for key, offer in most.items()}


def _chance(seed: int, host: str) -> int:
    return int.from_bytes(blake2b(f"{seed}:{host}".encode(), digest_size=8).digest(), "big")


def _verdicts(
    request: Request,
    views: Sequence[HostView],
    able: Sequence[HostView],
    refused: dict[str, Verdict],
    scored: Sequence[Scored],
) -> tuple[Verdict, ...]:
    """One verdict a host, in the order of the fleet; a host with several offers by its best."""
    found = refused
    for one in scored:
        rooms = one.offer.rooms
        for at, view in enumerate(one.offer.views):
            host = view.host.name
            other = found.get(host)
            if other is None or other.score < one.score:
                found[host] = _offered(host, one, rooms[at])
    if len(found) < len(views):
        rest = [view for view in able if view.host.name not in found]
        found.update(refuse_all(request, rest, scored[0].offer if scored else None))
    return tuple([found[view.host.name] for view in views])


def _offered(host: str, one: Scored, room: list[int]) -> Verdict:
    count = len(room) if one.offer.kind else 0
    needed, left = one.offer.needed, room[-1]
    note = "more than is free, as the spec allows" if count and needed > left else ""
    return Verdict(host, None, note, needed, left, count, 0, (), one.score, one.points)
