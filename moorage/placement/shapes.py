"""The ways in which hosts with so many accelerators of a kind could take the replica."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.demand import Ask
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import Layout, layouts_on_one_host
from moorage.placement.offer import Offer
from moorage.placement.request import Request


@dataclass(slots=True)
class Shape:
    """One way in which a host could take the replica.

    Attributes:
        count: Accelerators on the host.
        needed: Bytes on each of them.
        blocked: Why a larger share, which would help, cannot be; empty = it can, or would not.
    """

    count: int
    needed: int
    blocked: str


@dataclass(slots=True)
class Shapes:
    """All ways for hosts with so many accelerators of a kind.

    Attributes:
        asks: By layout the bytes on each accelerator, or why there is no claim.
        possible: Those with a claim that a host may miss by the least.
    """

    asks: list[tuple[Layout, int | str]]
    possible: list[Shape]


def shapes_of(request: Request, kind: AcceleratorKind, there: int, taken: Offer | None) -> Shapes:
    """The ways for hosts of a size.

    Args:
        request: What is to be placed.
        kind: The kind of accelerator.
        there: Accelerators of it on the host.
        taken: What others offer; a host with as many accelerators is measured against that only.
    """
    asks = _asks(request, kind, there, taken)
    possible = []
    for layout, ask in asks:
        if isinstance(ask, int):
            larger = [why for one, why in asks if isinstance(why, str) and one.count > layout.count]
            blocked = larger[-1] if larger and ask > kind.total else ""
            possible.append(Shape(layout.count, ask, blocked))
    # A shape that is missed by more than another, however full or empty the host, is never nearest.
    worst = min((shape.needed for shape in possible), default=0)
    return Shapes(asks, [one for one in possible if one.needed - kind.total <= worst])


def _asks(
    request: Request, kind: AcceleratorKind, there: int, taken: Offer | None
) -> list[tuple[Layout, int | str]]:
    """Bytes on each accelerator, or why not, for each shape that a host of this size can have."""
    asked = request.demand.least
    if taken and len(taken.rooms[0]) <= there:
        layouts = [Layout(count=len(taken.rooms[0]), split=taken.split)]
        asked = request.demand.full if taken.is_full else asked
    else:
        layouts = [one for one in layouts_on_one_host(request, there) if one.count <= there]
    asks = [(layout, asked(kind, layout.split)) for layout in layouts]
    return [(layout, ask.bytes if isinstance(ask, Ask) else ask) for layout, ask in asks]
