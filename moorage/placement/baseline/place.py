"""Applies the rules to the hosts that pass our filters, and scores the candidates from 0 to 100.

Two things differ from the peer: our gate drops candidates that cannot be claimed, and claims equal
the memory that the engine gets.
"""

from collections.abc import Iterable, Mapping, Sequence

from moorage.common.refusal import Reason
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.manual import manual
from moorage.placement.baseline.rooms import Room, by_type, rooms
from moorage.placement.baseline.seats import Seating
from moorage.placement.baseline.strategies import (
    StrategyResult,
    gib,
    many_hosts,
    one_accelerator,
    one_host,
)
from moorage.placement.baseline.terms import FLAG, Terms, read_terms
from moorage.placement.explanation import Verdict
from moorage.placement.placement import BaselineCandidate, HostShare, Ranking, Seat
from moorage.placement.request import Request
from moorage.placement.view import HostView
from moorage.spec import Strategy

WITHOUT_OTHERS = "could take part, but the hosts that it would be joined with cannot"


def place_by_rules(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], dict[str, Verdict], Ranking]:
    """Seats for one replica (none when nothing fits), a verdict for each host, and the ranking."""
    hosts = [_usable(view) for view in views]
    ranking = rank(request, hosts)
    seating = Seating(request, terms_of(request), {host.name: host for host in hosts}, replica)
    seats, at_gate = _best_seats(seating, ranking)
    return seats, {**_verdicts(ranking, hosts, fits=bool(seats)), **at_gate}, ranking


def rank(request: Request, hosts: Sequence[HostSnapshot]) -> Ranking:
    """The candidates of the first strategy that finds any; the order of the hosts breaks ties.

    Free memory that devices report, running processes and reachability do not count.
    """
    needs = terms_of(request)
    claims = [claim for host in hosts for claim in host.claims]
    fleet = rooms(hosts, {claim.release for claim in claims if request.is_own(claim.release)})
    if needs.listed:
        outcomes = [manual(needs, fleet, {claim.release for claim in claims if claim.links})]
    else:
        outcomes = _automatic(request, needs, fleet)
    candidates = outcomes[-1].candidates
    explained = not candidates or candidates[0].overcommit
    return Ranking(
        needed=needs.claim,
        candidates=candidates,
        scores=scores(request.spec.placement.strategy, candidates, fleet),
        messages=messages(needs, outcomes) if explained else (),
    )


def terms_of(request: Request) -> Terms:
    """The request in the terms of the rules."""
    return read_terms(request.spec, request.profile, request.subject.adapter_bytes)


def messages(terms: Terms, outcomes: Sequence[StrategyResult]) -> tuple[str, ...]:
    """The memory that the model needs, and why the last strategy that applied found too little."""
    ram = f" and {gib(terms.ram)} of RAM" if terms.ram else ""
    lines = [f"The model requires approximately {gib(terms.claim)} of accelerator memory{ram}."]
    if share := terms.utilization:
        total = gib(terms.claim / share)
        lines.append(
            f"With --{FLAG}={share}, all accelerators together need {total}, and "
            f"{int(share * 100)}% of each of them must be allocatable."
        )
    return (*lines, *next((one.lines for one in reversed(outcomes) if one.lines), ()))


def _automatic(request: Request, terms: Terms, fleet: Sequence[Room]) -> list[StrategyResult]:
    """The strategies in order, up to the first that finds anything."""
    outcomes = [one_accelerator(terms, by_type(fleet, all_types=True))]
    if not outcomes[-1].candidates:
        # If several accelerators are wanted, `one_accelerator` did not group the fleet.
        outcomes.append(one_host(terms, by_type(fleet, all_types=terms.wanted > 1)))
    if not outcomes[-1].candidates and request.spans_hosts:
        outcomes.append(many_hosts(terms, by_type(fleet, all_types=False)))
    return outcomes


def _usable(view: HostView) -> HostSnapshot:
    """The host with only the accelerators that the engine can use."""
    items = tuple(item for item in view.host.accelerators if view.kind_of(item) in view.groups)
    if len(items) == len(view.host.accelerators):
        return view.host
    return view.host.model_copy(update={"accelerators": items})


def _best_seats(seating: Seating, ranking: Ranking) -> tuple[tuple[Seat, ...], dict[str, Verdict]]:
    """The seats of the best candidate that passes the gate, and the verdicts on refused hosts."""
    refused: dict[str, Verdict] = {}
    pairs = zip(ranking.candidates, ranking.scores, strict=True)
    for candidate, _ in sorted(pairs, key=lambda pair: -pair[1]):
        seats, reasons = seating.seats_of(candidate)
        if seats:
            taken = {seat.host for seat in seats}
            return seats, {name: one for name, one in refused.items() if name not in taken}
        refused = {**reasons, **refused}
    return (), refused


def _verdicts(ranking: Ranking, hosts: Sequence[HostSnapshot], fits: bool) -> dict[str, Verdict]:
    """The rules' verdict on each host. If nothing fits, hosts of candidates lack other hosts."""
    best: dict[str, float] = {}
    for candidate, score in zip(ranking.candidates, ranking.scores, strict=True):
        for part in candidate.shares:
            best[part.host] = max(score, best.get(part.host, 0.0))
    why = " ".join(ranking.messages) or "another strategy or host was preferred"
    return {
        host.name: Verdict(host.name, Reason.ACCELERATOR_MEMORY, note=why)
        if host.name not in best
        else Verdict(host.name, score=best[host.name])
        if fits
        else Verdict(host.name, Reason.TOO_FEW_HOSTS, note=WITHOUT_OTHERS)
        for host in hosts
    }


HOST_WEIGHT, ACCELERATOR_WEIGHT = 0.85, 0.15
OTHERS_ON_ACCELERATOR = 0.2
"""Weight of another model's replica on an accelerator; a replica of the same model weighs 1."""

Range = tuple[int, int]
"""The fewest and the most replicas on the leaders' hosts."""

Weights = tuple[float, float, float]
"""A base, and the most that few replicas of the same model and of other models add to it."""

FREE_OF_MODEL: Weights = (0.85, 0.0, 0.15)
BESIDE_FREE: Weights = (0.45, 0.35, 0.20)
NONE_FREE: Weights = (0.50, 0.25, 0.15)

MEMORY_WEIGHT, RAM_WEIGHT = 2.0, 1.0
LEADER_WEIGHT, FOLLOWER_WEIGHT = 5.0, 1.0


def scores(
    strategy: Strategy, candidates: Sequence[BaselineCandidate], rooms: Sequence[Room]
) -> tuple[float, ...]:
    """One score for each candidate; of equal highest scores, the first wins."""
    by_host = {room.host: room for room in rooms}
    if strategy is Strategy.SPREAD:
        return _spread(candidates, by_host)
    return tuple(_filling(candidate, by_host) for candidate in candidates)


def _spread(
    candidates: Sequence[BaselineCandidate], rooms: Mapping[str, Room]
) -> tuple[float, ...]:
    """Scores that favour hosts with the fewest replicas, first of this model, then of others.

    Only leaders count (the peer's defect 12).
    """
    leaders = [rooms[candidate.leader.host] for candidate in candidates]
    same = _range(room.same.total for room in leaders)
    others = _range(room.others.total for room in leaders)
    return tuple(
        _host(room, same, others) * 100.0 * HOST_WEIGHT
        + _accelerators(room, candidate) * 100.0 * ACCELERATOR_WEIGHT
        for room, candidate in zip(leaders, candidates, strict=True)
    )


def _range(counts: Iterable[int]) -> Range:
    every = list(counts)
    return min(every, default=0), max(every, default=0)


def _host(room: Room, same: Range, others: Range) -> float:
    """The score of one leader's host, relative to the hosts of all leaders."""
    weights = NONE_FREE
    if same[0] == 0:
        weights = BESIDE_FREE if room.same.total else FREE_OF_MODEL
    base, for_same, for_others = weights
    return (
        base
        + for_same * _fewness(room.same.total, *same)
        + for_others * _fewness(room.others.total, *others)
    )


def _fewness(count: int, fewest: int, most: int) -> float:
    """1 for the fewest, 0 for the most."""
    return 1.0 if most <= fewest else 1.0 - (count - fewest) / (most - fewest)


def _accelerators(room: Room, candidate: BaselineCandidate) -> float:
    same, others = room.same.accelerators, room.others.accelerators
    parts = [
        1 / (1 + same.get(index, 0) + others.get(index, 0) * OTHERS_ON_ACCELERATOR)
        for index in candidate.leader.accelerators
    ]
    return sum(parts) / len(parts) if parts else 1.0


def _filling(candidate: BaselineCandidate, rooms: Mapping[str, Room]) -> float:
    """The percentage of the remaining memory and RAM that a candidate fills.

    Followers rank by the sum of their scores, not by the mean (the peer's defect 12).
    """
    room = rooms[candidate.leader.host]
    leader = _share(candidate.leader, room, room.free_of_type(candidate.accelerator_type))
    count = len(candidate.followers)
    if not count:
        return leader
    followers = 0.0
    for share in candidate.followers:
        room = rooms[share.host]
        followers += _share(share, room, room.free_by_index)
    weighed = leader * LEADER_WEIGHT + followers * count * FOLLOWER_WEIGHT
    return weighed / (LEADER_WEIGHT + FOLLOWER_WEIGHT * count)


def _share(share: HostShare, room: Room, free: Mapping[int, int]) -> float:
    """The percentage that a share fills of one host.

    The fullest accelerator counts; a resource with nothing left counts as 0.
    """
    ram = _part(share.ram_bytes, room.ram)
    if not share.accelerators:
        return ram
    pairs = zip(share.accelerators, share.accelerator_bytes, strict=True)
    fullest = max(_part(taken, free.get(index, 0)) for index, taken in pairs)
    return (ram * RAM_WEIGHT + fullest * MEMORY_WEIGHT) / (RAM_WEIGHT + MEMORY_WEIGHT)


def _part(taken: int, free: int) -> float:
    return taken / free * 100.0 if free else 0.0
