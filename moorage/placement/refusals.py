"""Why hosts that passed the filters still cannot take the replica, with the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.placement.claims import Resource
from moorage.placement.demand import Ask
from moorage.placement.fit import holders
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import Layout, layouts_on_one_host
from moorage.placement.offer import Offer
from moorage.placement.on_cpu import cpu_refusal, ram_needed
from moorage.placement.request import Refused, Request
from moorage.placement.verdict import Refusal, Verdict
from moorage.placement.view import HostView, at_once


def unfit(view: HostView, reason: Refused) -> Verdict:
    """The verdict of a refusal."""
    return Verdict(
        host=view.host.name,
        refusal=reason.refusal,
        note=reason.note,
        needed=reason.needed,
        available=reason.available,
        held_by=reason.held_by,
    )


def refuse_all(
    request: Request, views: Sequence[HostView], taken: Offer | None
) -> Iterator[tuple[str, Verdict]]:
    """A verdict for each host that got no offer.

    Args:
        request: What is to be placed.
        views: The hosts that got none.
        taken: What others offer: a host is measured against the shape that is taken; where there
            is none, against the shape that it misses by the least.
    """
    shape = taken if taken and taken.kind and len(taken.views) == 1 else None
    cache: dict[tuple[AcceleratorKind, int], list[tuple[Layout, int | str]]] = {}
    for view in views:
        yield view.host.name, _refuse(request, view, shape, cache)


def _refuse(
    request: Request,
    view: HostView,
    taken: Offer | None,
    cache: dict[tuple[AcceleratorKind, int], list[tuple[Layout, int | str]]],
) -> Verdict:
    if not view.groups:
        reason = cpu_refusal(request, view, ram_needed(request))
        return unfit(view, reason or Refused(Refusal.NO_ACCELERATOR, "accelerators are preferred"))
    best: Verdict | None = None
    for kind, room in view.groups.items():
        key = (kind, len(room))
        if key not in cache:
            cache[key] = _asks(request, kind, len(room), taken)
        verdict = _measured(request, view, kind, room, cache[key])
        if best is None or verdict.needed - verdict.available < best.needed - best.available:
            best = verdict
    assert best is not None
    return best


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


def _measured(
    request: Request,
    view: HostView,
    kind: AcceleratorKind,
    room: list[int],
    asks: list[tuple[Layout, int | str]],
) -> Verdict:
    """The host against the shape that it misses by the least."""
    known = [(one, ask) for one, ask in asks if isinstance(ask, int)]
    if not asks:
        return _too_few(request, view, kind, room)
    if not known:
        return _impossible(request, view, asks)
    layout, needed = min(known, key=lambda pair: pair[1] - _left(request, view, pair[0], room))
    blocked = [ask for one, ask in asks if isinstance(ask, str) and one.count > layout.count]
    # A larger share would help, and only the shape of the model is in its way.
    uneven = bool(blocked) and needed > kind.total
    return Verdict(
        host=view.host.name,
        refusal=Refusal.PARALLELISM if uneven else Refusal.ACCELERATOR_MEMORY,
        note=blocked[-1] if uneven else "",
        needed=needed,
        available=_left(request, view, layout, room),
        count=layout.count,
        there=len(room),
        held_by=holders(view.host, Resource.ACCELERATOR) if view.host.claims else (),
    )


def _impossible(request: Request, view: HostView, asks: list[tuple[Layout, int | str]]) -> Verdict:
    """No shape has a claim: what is in the way of the smallest that divides the heads."""
    uneven = request.demand.uneven
    even = [pair for pair in asks if not uneven(pair[0].split.tensor)]
    layout, reason = even[0] if even else asks[-1]
    refusal = Refusal.ENGINE if even else Refusal.PARALLELISM
    return Verdict(host=view.host.name, refusal=refusal, note=str(reason), count=layout.count)


def _left(request: Request, view: HostView, layout: Layout, room: list[int]) -> int:
    """What the fullest of the accelerators that would be taken can give."""
    return at_once(view, room[: layout.count], request.ram)[-1]


def _too_few(request: Request, view: HostView, kind: AcceleratorKind, room: list[int]) -> Verdict:
    wanted = request.count or 0
    return Verdict(
        host=view.host.name,
        refusal=Refusal.NO_ACCELERATOR,
        note=f"{wanted} accelerators asked for, {len(room)} x {kind} there",
        count=wanted,
        there=len(room),
    )
