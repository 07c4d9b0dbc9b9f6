"""Seats on one host: n of its accelerators that are alike."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.demand import Ask
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import Layout, layouts_on_one_host
from moorage.placement.offer import Offer
from moorage.placement.request import Request
from moorage.placement.view import HostView, at_once
from moorage.spec import Strategy


def one_host(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """The hosts that can take the replica on the fewest accelerators with which any can."""
    most = max((len(room) for view in views for room in view.groups.values()), default=0)
    for layout in layouts_on_one_host(request, most):
        if layout.count <= most and (offers := _offers(request, views, layout)):
            return offers
    return []


def _offers(request: Request, views: Sequence[HostView], layout: Layout) -> list[Offer]:
    demand, count, split = request.demand, layout.count, layout.split
    packs = request.spec.placement.strategy == Strategy.BINPACK
    asks: dict[AcceleratorKind, tuple[int, int]] = {}
    offers = []
    for view in views:
        for kind, room in view.groups.items():
            if len(room) < count:
                continue
            if kind not in asks:
                asks[kind] = _bounds(kind, demand.least(kind, split), demand.full(kind, split))
            least, full = asks[kind]
            if view.host.unified_memory:
                room = at_once(view, room[:count], request.ram)
            left = room[count - 1]
            if left >= full:
                chosen = tightest(room, count, full) if packs else room[:count]
                offers.append(Offer((view,), (chosen,), kind, split, full))
            elif left >= least:
                offers.append(Offer((view,), (room[:count],), kind, split, left, is_full=False))
    return offers


def _bounds(kind: AcceleratorKind, least: Ask | str, full: Ask | str) -> tuple[int, int]:
    """Bytes that must be there, and bytes for the whole context; a refusal fits nowhere."""
    nowhere = kind.total + 1
    return (
        nowhere if isinstance(least, str) else least.bytes,
        nowhere if isinstance(full, str) else full.bytes,
    )


def tightest(room: list[int], count: int, needed: int) -> list[int]:
    """The fullest accelerators that still have the room, most room first."""
    fitting = sum(1 for left in room if left >= needed)
    return room[fitting - count : fitting]
