"""Seats on one host: n of its accelerators that are alike."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.demand import Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import Layout, layouts_on_one_host
from moorage.placement.offer import Offer
from moorage.placement.request import Request
from moorage.placement.view import HostView
from moorage.placement.within_ram import within_ram
from moorage.spec import Strategy


def one_host(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """The hosts that can take the replica on the fewest accelerators with which any can."""
    largest: dict[AcceleratorKind, int] = {}
    for view in views:
        for kind, room in view.groups.items():
            if len(room) > largest.get(kind, 0):
                largest[kind] = len(room)
    for layout in layouts_on_one_host(request, max(largest.values(), default=0)):
        bounds = {
            kind: _bounds(request, kind, layout.split)
            for kind, most in largest.items()
            if layout.count <= most
        }
        # Hosts are asked only where an empty accelerator would do.
        possible = any(least <= kind.total for kind, (least, _) in bounds.items())
        if possible and (offers := _offers(request, views, layout, bounds)):
            return offers
    return []


def _offers(
    request: Request,
    views: Sequence[HostView],
    layout: Layout,
    bounds: dict[AcceleratorKind, tuple[int, int]],
) -> list[Offer]:
    count, split = layout.count, layout.split
    packs = request.spec.placement.strategy == Strategy.BINPACK
    offers = []
    for view in views:
        for kind, room in view.groups.items():
            if len(room) < count:
                continue
            least, full = bounds[kind]
            chosen = within_ram(request, view, kind, room[:count])
            left = chosen[-1]
            if left >= full:
                if packs:
                    chosen = within_ram(request, view, kind, tightest(room, count, full))
                offers.append(Offer((view,), (chosen,), kind, split, full))
            elif left >= least:
                offers.append(Offer((view,), (chosen,), kind, split, left, is_full=False))
    return offers


def _bounds(request: Request, kind: AcceleratorKind, split: Split) -> tuple[int, int]:
    """Bytes that must be there, and bytes for the whole context; a refusal fits nowhere."""
    least, full = request.demand.least(kind, split), request.demand.full(kind, split)
    nowhere = kind.total + 1
    return (
        nowhere if isinstance(least, str) else least.bytes,
        nowhere if isinstance(full, str) else full.bytes,
    )


def tightest(room: list[int], count: int, needed: int) -> list[int]:
    """The fullest accelerators that still have the room, most room first."""
    if room[-1] >= needed:
        return room[-count:]
    fitting = sum(1 for left in room if left >= needed)
    return room[fitting - count : fitting]
