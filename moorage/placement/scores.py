"""Which of several fitting hosts is best: a list of terms and their weights."""

from __future__ import annotations

from collections.abc import Callable

from moorage.placement.claims import Resource
from moorage.placement.filters import image_there
from moorage.placement.offer import Offer, Part
from moorage.placement.placement import CPU
from moorage.placement.request import Request
from moorage.spec import Strategy

Term = Callable[[Request, Offer, Part], float]
"""Rates one host of an offer from 0 to 1."""


def score(request: Request, offer: Offer) -> None:
    """Fill in the score of an offer: the mean over its hosts, leader and followers alike."""
    weights = WEIGHTS[request.spec.placement.strategy]
    parts = offer.parts
    for name, (weight, rate) in weights.items():
        rated = sum(rate(request, offer, part) for part in parts) / len(parts)
        offer.terms[name] = weight * rated
    offer.score = sum(offer.terms.values())


def _apart(request: Request, _offer: Offer, part: Part) -> float:
    """Replicas of one model share no host where that can be avoided."""
    host = part.view.host
    if not host.claims:
        return 1.0
    prefix = f"{request.spec.name}.v"
    replicas = sum(
        1
        for claim in host.claims
        if claim.resource == Resource.PORT and claim.release.startswith(prefix)
    )
    return 1 / (1 + replicas)


def _accelerators_free(_request: Request, offer: Offer, part: Part) -> float:
    """Room that is left on the accelerators that would be taken; on CPU, of the RAM."""
    total = offer.kind.total if offer.kind else part.view.host.ram_total
    left = sum(part.room) / len(part.room) - offer.needed
    return max(0.0, left / total) if total else 0.0


def _accelerators_full(request: Request, offer: Offer, part: Part) -> float:
    return 1 - _accelerators_free(request, offer, part)


def _host_free(_request: Request, offer: Offer, part: Part) -> float:
    """Room on all accelerators of the host; on CPU, of its RAM."""
    view = part.view
    if offer.kind is None:
        return view.room.ram / view.host.ram_total if view.host.ram_total else 0.0
    room = total = 0
    for kind, rooms in view.groups.items():
        room += sum(rooms)
        total += kind.total * len(rooms)
    return room / total


def _host_full(request: Request, offer: Offer, part: Part) -> float:
    return 1 - _host_free(request, offer, part)


def _weights_there(request: Request, _offer: Offer, part: Part) -> float:
    return 1.0 if request.staged in part.view.host.models else 0.0


def _image_there(request: Request, offer: Offer, part: Part) -> float:
    kind = offer.kind.type if offer.kind else CPU
    return 1.0 if image_there(request, part.view.host, kind) else 0.0


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
