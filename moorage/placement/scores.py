"""Which of several fitting hosts is best: a list of terms and their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from moorage.common.values import fields
from moorage.inventory.claims import Resource
from moorage.placement.candidates import Offer, Scored
from moorage.placement.demand import Split
from moorage.placement.placement import CPU
from moorage.placement.request import Request
from moorage.placement.runtime import image_there
from moorage.placement.seating import tokens_on
from moorage.placement.view import AcceleratorKind, HostView
from moorage.spec import Strategy

PORT = Resource.PORT

Term = Callable[[Request, Offer, HostView, list[int]], float]
"""Rates one host of an offer, with the room that is taken there, from 0 to 1."""


def score_all(request: Request, offers: Sequence[Offer], views: Sequence[HostView]) -> list[Scored]:
    """The points of each offer: the mean over its hosts, leader and followers alike.

    Args:
        request: What is to be placed.
        offers: What the hosts offer.
        views: The hosts; a term that gives points to none of them is not asked.
    """
    idle: set[Term] = set()
    if not any(view.host.images for view in views):
        idle.add(_image_there)
    if not any(view.host.models for view in views):
        idle.add(_weights_there)
    columns = [
        [0.0] * len(offers) if rate in idle else _points(request, offers, weight, rate)
        for weight, rate in WEIGHTS[request.spec.placement.strategy].values()
    ]
    rows = zip(*columns, strict=True)
    return [Scored(offer, row, sum(row)) for offer, row in zip(offers, rows, strict=True)]


def _points(request: Request, offers: Sequence[Offer], weight: float, rate: Term) -> list[float]:
    """What one term gives to each offer."""
    return [
        weight * rate(request, offer, offer.views[0], offer.rooms[0])
        if len(offer.views) == 1
        else weight * _total(request, offer, rate) / len(offer.views)
        for offer in offers
    ]


def _total(request: Request, offer: Offer, rate: Term) -> float:
    pairs = zip(offer.views, offer.rooms, strict=True)
    return sum(rate(request, offer, view, room) for view, room in pairs)


def _apart(request: Request, _offer: Offer, view: HostView, _room: list[int]) -> float:
    """The fewer replicas of the model a host has already, the better; none at all counts most."""
    replicas = 0
    for claim in map(fields, view.host.claims):
        if claim["resource"] is PORT and not claim["links"] and request.is_own(claim["release"]):
            replicas += 1
    return 1 / (1 + replicas)


def _accelerators_free(_request: Request, offer: Offer, view: HostView, room: list[int]) -> float:
    """Room that is left on the accelerators that would be taken; on CPU, of the RAM."""
    total = offer.kind.total if offer.kind else view.host.ram_total
    left = sum(room) / len(room) - offer.needed
    return left / total if total and left > 0 else 0.0


def _accelerators_full(request: Request, offer: Offer, view: HostView, room: list[int]) -> float:
    return 1 - _accelerators_free(request, offer, view, room)


def _host_free(_request: Request, offer: Offer, view: HostView, _room: list[int]) -> float:
    """Room on all accelerators of the host; on CPU, of its RAM."""
    if offer.kind is None:
        return view.room.ram / view.host.ram_total if view.host.ram_total else 0.0
    room = total = 0
    for kind, rooms in view.groups.items():
        room += sum(rooms)
        total += kind.total * len(rooms)
    return room / total


def _host_full(request: Request, offer: Offer, view: HostView, room: list[int]) -> float:
    return 1 - _host_free(request, offer, view, room)


def _weights_there(request: Request, _offer: Offer, view: HostView, _room: list[int]) -> float:
    return 1.0 if request.staged in view.host.models else 0.0


def _image_there(request: Request, offer: Offer, view: HostView, _room: list[int]) -> float:
    if not view.host.images:
        return 0.0
    kind = offer.kind.type if offer.kind else CPU
    return 1.0 if image_there(request, view.host, kind) else 0.0


WEIGHTS: dict[Strategy, dict[str, tuple[float, Term]]] = {
    Strategy.SPREAD: {
        "apart": (40, _apart),
        "host free": (30, _host_free),
        "accelerators free": (20, _accelerators_free),
        "weights there": (7, _weights_there),
        "image there": (3, _image_there),
    },
    Strategy.BINPACK: {
        "accelerators full": (50, _accelerators_full),
        "host full": (40, _host_full),
        "weights there": (7, _weights_there),
        "image there": (3, _image_there),
    },
}
"""By strategy: each term with its points, 100 in all."""


DIGITS = 9
"""Scores are compared to so many digits: beyond, they differ by the order of additions."""


ALIKE = 2 * 10**-DIGITS
"""Scores that are further apart than this differ in their digits."""


def best(request: Request, scored: Sequence[Scored]) -> Offer:
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
