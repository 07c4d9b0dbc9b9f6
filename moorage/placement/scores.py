"""Which of several fitting hosts is best: a list of terms and their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moorage.common.values import fields
from moorage.inventory.claims import Resource
from moorage.placement.filters import image_there
from moorage.placement.offer import Offer, Scored
from moorage.placement.placement import CPU
from moorage.placement.request import Request
from moorage.placement.view import HostView
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
