"""Why hosts that passed the filters still cannot take the replica, with the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from moorage.common.refusal import Reason, Refusal
from moorage.common.values import fields
from moorage.inventory.claims import Resource
from moorage.placement.candidates import (
    Candidate,
    Layout,
    layouts_on_one_host,
    within_ram,
)
from moorage.placement.demand import Allocation, Split
from moorage.placement.explanation import Verdict
from moorage.placement.fit import holders
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView


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


def shapes_of(
    request: Request, kind: AcceleratorKind, there: int, taken: Candidate | None
) -> Shapes:
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
    request: Request, kind: AcceleratorKind, there: int, taken: Candidate | None
) -> list[tuple[Layout, int | str]]:
    """Bytes on each accelerator, or why not, for each shape that a host of this size can have."""
    asked = request.demand.least
    if taken and len(taken.rooms[0]) <= there:
        layouts = [Layout(count=len(taken.rooms[0]), split=taken.split)]
        asked = request.demand.full if taken.is_full else asked
    else:
        layouts = [one for one in layouts_on_one_host(request, there) if one.count <= there]
    asks = [(layout, asked(kind, layout.split)) for layout in layouts]
    return [(layout, ask.bytes if isinstance(ask, Allocation) else ask) for layout, ask in asks]


ACCELERATOR = Resource.ACCELERATOR


def with_replica_note(view: HostView, verdict: Verdict) -> Verdict:
    """A refusal that also says which replicas of the same placement are on the host already."""
    placed = [claim for claim in view.host.claims if not claim.release]
    number = sum(claim.resource == Resource.PORT and not claim.links for claim in placed)
    if not number or not verdict.refusal:
        return verdict
    told = f"{number} of the replicas placed here already"
    note = f"{verdict.note}; {told}" if verdict.note else told
    return replace(verdict, note=note)


def refuse_all(
    request: Request, views: Sequence[HostView], taken: Candidate | None
) -> Iterator[tuple[str, Verdict]]:
    """A verdict for each host that got no offer.

    Args:
        request: What is to be placed.
        views: The hosts that got none.
        taken: What others offer: a host is measured against the shape that is taken; where there
            is none, against the shape that it misses by the least.
    """
    shape = taken if taken and taken.kind and len(taken.views) == 1 else None
    cache: dict[tuple[AcceleratorKind, int], Shapes] = {}
    for view in views:
        if request.must_span:
            yield view.host.name, joint_refusal(request, view, taken is not None)
        elif view.groups:
            yield view.host.name, _refuse(request, view, shape, cache)
        else:
            yield view.host.name, _refuse_on_cpu(request, view, taken)


def _refuse_on_cpu(request: Request, view: HostView, taken: Candidate | None) -> Verdict:
    whole = taken and taken.kind is None and taken.is_full
    ask = request.cpu_demand.full() if whole else request.cpu_demand.least()
    reason = cpu_refusal(request, view, ask.bytes)
    refused = reason or Refusal(Reason.NO_ACCELERATOR, "accelerators are preferred")
    return Verdict.of(view.host.name, refused)


def _refuse(
    request: Request,
    view: HostView,
    taken: Candidate | None,
    cache: dict[tuple[AcceleratorKind, int], Shapes],
) -> Verdict:
    best: Verdict | None = None
    for kind, room in view.groups.items():
        key = (kind, len(room))
        shapes = cache.get(key)
        if shapes is None:
            shapes = cache[key] = shapes_of(request, kind, len(room), taken)
        verdict = _measured(request, view, kind, room, shapes)
        if best is None or verdict.needed - verdict.available < best.needed - best.available:
            best = verdict
    assert best is not None
    return best


def _measured(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int], shapes: Shapes
) -> Verdict:
    """The host against the shape that it misses by the least."""
    if not shapes.asks:
        return _too_few(request, view, kind, room)
    if not shapes.possible:
        return _impossible(request, view, shapes.asks)
    if request.spec.extended_kv_cache and (short := _ram_short(request, view, kind, shapes)):
        return Verdict.of(view.host.name, short)
    there = fields(view.host)
    nearest, available = _nearest(request, view, kind, room, shapes.possible)
    if available < nearest.needed <= room[nearest.count - 1] and not there["unified_memory"]:
        return short_of_ram(request, view, kind, nearest.needed * nearest.count)
    return Verdict(
        there["name"],
        # A larger share would help, and only the shape of the model is in its way.
        Reason.PARALLELISM if nearest.blocked else Reason.ACCELERATOR_MEMORY,
        nearest.blocked,
        nearest.needed,
        available,
        nearest.count,
        len(room),
        holders(view.host, ACCELERATOR) if there["claims"] else (),
    )


def _ram_short(
    request: Request, view: HostView, kind: AcceleratorKind, shapes: Shapes
) -> Refusal | None:
    """Too little RAM for the extended cache of even the smallest shape."""
    claims = (shape.needed * shape.count for shape in shapes.possible)
    needed = min(request.ram_for(kind.type, claim) for claim in claims)
    if needed <= view.room.ram:
        return None
    held_by = holders(view.host, Resource.RAM)
    return Refusal(Reason.RAM, needed=needed, available=view.room.ram, held_by=held_by)


def _nearest(
    request: Request,
    view: HostView,
    kind: AcceleratorKind,
    room: list[int],
    shapes: list[Shape],
) -> tuple[Shape, int]:
    """The shape that is missed by the least, and what there is for it."""
    limited = view.host.unified_memory or request.spec.extended_kv_cache
    nearest, available = shapes[0], 0
    for shape in shapes:
        taken = room[: shape.count]
        left = (within_ram(request, view, kind, taken) if limited else taken)[-1]
        if shape is nearest or shape.needed - left < nearest.needed - available:
            nearest, available = shape, left
    return nearest, available


def _impossible(request: Request, view: HostView, asks: list[tuple[Layout, int | str]]) -> Verdict:
    """No shape has a claim: what is in the way of the smallest that divides the heads."""
    uneven = request.demand.uneven
    even = [pair for pair in asks if not uneven(pair[0].split.tensor)]
    layout, reason = even[0] if even else asks[-1]
    refusal = Reason.ENGINE if even else Reason.PARALLELISM
    return Verdict(host=view.host.name, refusal=refusal, note=str(reason), count=layout.count)


def _too_few(request: Request, view: HostView, kind: AcceleratorKind, room: list[int]) -> Verdict:
    wanted = request.count or 0
    return Verdict(
        host=view.host.name,
        refusal=Reason.NO_ACCELERATOR,
        note=f"{wanted} accelerators asked for, {len(room)} x {kind} there",
        count=wanted,
        there=len(room),
    )


def joint_refusal(request: Request, view: HostView, others_do: bool) -> Verdict:
    """The verdict of a host that passed the filters, where a number of hosts is asked for.

    Args:
        request: What is to be placed.
        view: The host.
        others_do: Whether the replica was placed, on other hosts.
    """
    short = _short(request, view)
    if short is not None:
        return short
    if others_do:
        return Verdict(view.host.name, note="could take part; other hosts were preferred")
    note = f"could take part, but {request.hosts} hosts are asked for and too few others can"
    return Verdict(view.host.name, Reason.TOO_FEW_HOSTS, note)


def _short(request: Request, view: HostView) -> Verdict | None:
    """What the host itself lacks for its part; None = nothing."""
    if not view.groups:
        return _short_on_cpu(request, view)
    found = list(_parts(request, view))
    if any(one is None for one in found):
        return None
    missed = [one for one in found if one is not None]
    measured = [one for one in missed if one.needed]
    if measured:
        return min(measured, key=lambda one: one.needed - one.available)
    if missed:
        return missed[0]
    note = f"{request.count} accelerators over {request.hosts} hosts are more than it has"
    return Verdict(view.host.name, Reason.NO_ACCELERATOR, note)


def _short_on_cpu(request: Request, view: HostView) -> Verdict | None:
    if reason := request.demand.uneven(request.hosts):
        return Verdict(view.host.name, Reason.PARALLELISM, reason)
    needed = request.cpu_demand.least(request.hosts).bytes
    refused = cpu_refusal(request, view, needed)
    return Verdict.of(view.host.name, refused) if refused else None


def _parts(request: Request, view: HostView) -> Iterator[Verdict | None]:
    """By number of accelerators that it could give: what is short; None = nothing."""
    for kind, room in view.groups.items():
        for count in range(1, len(room) + 1):
            if request.count not in (None, count * request.hosts):
                continue
            split = Split(tensor=count, pipeline=request.hosts)
            if request.stated:
                split = Split(request.stated.tensor, request.stated.pipeline)
            ask = request.demand.least(kind, split)
            if isinstance(ask, str):
                yield Verdict(view.host.name, Reason.PARALLELISM, ask)
            elif ask.bytes <= (left := within_ram(request, view, kind, room[:count])[-1]):
                yield None
            elif ask.bytes <= room[count - 1] and not view.host.unified_memory:
                yield short_of_ram(request, view, kind, ask.bytes * count)
            else:
                held_by = holders(view.host, Resource.ACCELERATOR)
                yield Verdict(
                    view.host.name,
                    Reason.ACCELERATOR_MEMORY,
                    needed=ask.bytes,
                    available=left,
                    count=count,
                    there=len(room),
                    held_by=held_by,
                )


def short_of_ram(request: Request, view: HostView, kind: AcceleratorKind, claimed: int) -> Verdict:
    """The refusal of a host whose accelerators would do, for the RAM beside them."""
    return Verdict(
        view.host.name,
        Reason.RAM,
        needed=request.ram_for(kind.type, claimed),
        available=view.room.ram,
        held_by=holders(view.host, Resource.RAM),
    )


def cpu_refusal(request: Request, view: HostView, needed: int) -> Refusal | None:
    """Why a host cannot run the replica on its processors; None = it can."""
    host, room = view.host, view.room
    if needed > room.ram:
        held_by = holders(host, Resource.RAM)
        return Refusal(Reason.RAM, needed=needed, available=room.ram, held_by=held_by)
    wanted = request.spec.placement.cores
    cores = 1 if wanted == "auto" else wanted
    if cores > room.cores:
        held_by = holders(host, Resource.CORES)
        return Refusal(Reason.CORES, needed=cores, available=room.cores, held_by=held_by)
    return None
