"""Scores candidates by weighted terms, and picks the best."""

from collections.abc import Callable, Iterable, Sequence, Set
from hashlib import blake2b
from operator import itemgetter

from moorage.common.values import fields
from moorage.inventory.claims import Resource
from moorage.placement.candidates import Candidate
from moorage.placement.demand import Split
from moorage.placement.request import Request
from moorage.placement.seating import tokens_on
from moorage.placement.view import AcceleratorKind, HostView
from moorage.spec import Strategy

PORT = Resource.PORT

Term = Callable[[Request, Candidate, HostView, list[int]], float]
"""Rates one host of a candidate from 0 to 1, given the room on the accelerators to take."""


def score_all(request: Request, candidates: Sequence[Candidate], views: Sequence[HostView]) -> None:
    """Score each candidate: the mean over its hosts, leader and followers alike.

    Terms that rate all hosts alike are computed once.
    """
    if not candidates:
        return
    weights = WEIGHTS[request.spec.placement.strategy].values()
    same = _same_for_all(request, views, {rate for _, rate in weights})
    points = _points_alone if all(len(one.views) == 1 for one in candidates) else _points
    columns = [
        [weight * same[rate]] * len(candidates)
        if rate in same
        else points(request, candidates, weight, rate)
        for weight, rate in weights
    ]
    for candidate, row in zip(candidates, zip(*columns, strict=True), strict=True):
        candidate.points, candidate.score = row, sum(row)


def _same_for_all(
    request: Request, views: Sequence[HostView], terms: Set[Term]
) -> dict[Term, float]:
    """Those of the terms that rate all hosts alike, with their rating."""
    hosts = [fields(view.host) for view in views]
    same: dict[Term, float] = {}
    if not any(map(itemgetter("images"), hosts)):
        same[_image_there] = 0.0
    staged = request.subject.staged
    if not any(staged in models for models in map(itemgetter("models"), hosts)):
        same[_weights_there] = 0.0
    if _apart in terms:
        held = filter(None, map(itemgetter("claims"), hosts))
        if not any(map(request.is_own, {claim.release for claims in held for claim in claims})):
            same[_apart] = 1.0
    return same


def _points_alone(
    request: Request, candidates: Sequence[Candidate], weight: float, rate: Term
) -> list[float]:
    """Points of one term for each candidate, all of one host: about twice as fast."""
    return [weight * rate(request, one, one.views[0], one.rooms[0]) for one in candidates]


def _points(
    request: Request, candidates: Sequence[Candidate], weight: float, rate: Term
) -> list[float]:
    points = []
    for one in candidates:
        pairs = zip(one.views, one.rooms, strict=True)
        total = sum(rate(request, one, view, room) for view, room in pairs)
        points.append(weight * total / len(one.views))
    return points


def _apart(request: Request, _candidate: Candidate, view: HostView, _room: list[int]) -> float:
    """The fewer replicas of the model on the host, the higher."""
    replicas = 0
    for claim in fields(view.host)["claims"]:
        if claim.resource is PORT and not claim.links and request.is_own(claim.release):
            replicas += 1
    return 1 / (1 + replicas)


def _accelerators_free(
    _request: Request, candidate: Candidate, view: HostView, room: list[int]
) -> float:
    """Fraction left free on the accelerators to take; on CPU, of the RAM."""
    total = candidate.kind.total if candidate.kind else view.host.ram_total
    left = sum(room) / len(room) - candidate.needed
    return left / total if total and left > 0 else 0.0


def _host_free(_request: Request, candidate: Candidate, view: HostView, _room: list[int]) -> float:
    """Fraction free now on all accelerators of the host; on CPU, of its RAM."""
    if candidate.kind is None:
        return view.room.ram / view.host.ram_total if view.host.ram_total else 0.0
    room = total = 0
    for kind, rooms in view.groups.items():
        room += sum(rooms)
        total += kind.total * len(rooms)
    return room / total


def _weights_there(
    request: Request, _candidate: Candidate, view: HostView, _room: list[int]
) -> float:
    return 1.0 if request.subject.staged in view.host.models else 0.0


def _image_there(request: Request, candidate: Candidate, view: HostView, _room: list[int]) -> float:
    return 1.0 if request.images.on(view, candidate.kind) else 0.0


WEIGHTS: dict[Strategy, dict[str, tuple[float, Term]]] = {
    Strategy.SPREAD: {
        "apart": (40, _apart),
        "host free": (30, _host_free),
        "accelerators free": (20, _accelerators_free),
        "weights there": (7, _weights_there),
        "image there": (3, _image_there),
    },
    Strategy.BINPACK: {
        "accelerators full": (50, lambda *one: 1 - _accelerators_free(*one)),
        "host full": (40, lambda *one: 1 - _host_free(*one)),
        "weights there": (7, _weights_there),
        "image there": (3, _image_there),
    },
}
"""Terms with their points, 100 in all, by strategy."""


DIGITS = 9
"""Decimals to which scores are compared: further digits depend on the order of additions."""


ALIKE = 2 * 10**-DIGITS
"""Scores further apart than this differ within `DIGITS`."""


def best(request: Request, scored: Sequence[Candidate]) -> Candidate:
    """The candidate with the highest score; a seed, else the order of the fleet, breaks ties.

    If no candidate fits the whole context, the longest context wins, then the most room, then the
    score.
    """
    seed = request.spec.placement.seed
    near: Iterable[int] = range(len(scored))
    reach: dict[tuple[AcceleratorKind | None, Split], int] = {}
    if scored[0].is_full:
        top = max([one.score for one in scored]) - ALIKE
        near = [at for at, one in enumerate(scored) if one.score > top]
    else:
        reach = _reach(request, scored)

    def rank(at: int) -> tuple[int, int, float, int]:
        candidate = scored[at]
        tie = -at if seed is None else _chance(seed, candidate.views[0].host.name)
        shape = candidate.kind, candidate.split
        cut = (0, 0) if candidate.is_full else (reach[shape], candidate.budget)
        return (*cut, round(candidate.score, DIGITS), tie)

    return scored[max(near, key=rank)]


def _reach(
    request: Request, scored: Sequence[Candidate]
) -> dict[tuple[AcceleratorKind | None, Split], int]:
    """For each kind and split, the longest context on the candidate with the most room."""
    most: dict[tuple[AcceleratorKind | None, Split], Candidate] = {}
    for candidate in scored:
        key = candidate.kind, candidate.split
        if not candidate.is_full and (key not in most or candidate.budget > most[key].budget):
            most[key] = candidate
    return {key: tokens_on(request, candidate) for key, candidate in most.items()}


def _chance(seed: int, host: str) -> int:
    return int.from_bytes(blake2b(f"{seed}:{host}".encode(), digest_size=8).digest(), "big")
