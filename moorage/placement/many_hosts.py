"""Seats over several hosts: tensor parallel within each, pipeline parallel across them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moorage.placement.demand import Ask, Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.offer import Offer
from moorage.placement.one_host import tightest
from moorage.placement.request import Request
from moorage.placement.view import HostView
from moorage.spec import Strategy

MOST_HOSTS = 64
ROUNDS = 4
"""How often an uneven selection is narrowed before it is given up."""


@dataclass(slots=True)
class Part:
    """What one host can give: the room of accelerators of one kind, most first."""

    view: HostView
    room: list[int]


def many_hosts(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """One offer a kind of accelerator: the fewest hosts first, then the fewest accelerators.

    Hosts may take part with some of their accelerators. Where hosts differ too much for equal
    shares, every accelerator becomes a pipeline stage of its own.
    """
    by_kind: dict[AcceleratorKind, list[Part]] = defaultdict(list)
    for view in views:
        for kind, room in view.groups.items():
            by_kind[kind].append(Part(view=view, room=room))
    offers = []
    for kind, parts in by_kind.items():
        for hosts in range(2, min(len(parts), MOST_HOSTS) + 1):
            offer = _even(request, kind, parts, hosts) or _uneven(request, kind, parts, hosts)
            if offer:
                offers.append(offer)
                break
    return offers


def _even(request: Request, kind: AcceleratorKind, parts: list[Part], hosts: int) -> Offer | None:
    """So many hosts with the same number of accelerators each."""
    for count, split in _even_splits(request, parts, hosts):
        full, least = request.demand.full(kind, split), request.demand.least(kind, split)
        for ask, is_full in ((full, True), (least, False)):
            if isinstance(ask, str):
                continue
            able = [p for p in parts if len(p.room) >= count and p.room[count - 1] >= ask.bytes]
            if len(able) < hosts:
                continue
            chosen = _best(request, able, hosts, count, ask.bytes)
            return _offer(chosen, kind, split, ask, is_full)
    return None


def _even_splits(request: Request, parts: list[Part], hosts: int) -> Iterator[tuple[int, Split]]:
    most = max(len(part.room) for part in parts)
    if request.stated:
        if request.stated.world % hosts == 0:
            split = Split(request.stated.tensor, request.stated.pipeline)
            yield request.stated.world // hosts, split
        return
    for count in range(1, most + 1):
        if request.count is None or request.count == count * hosts:
            yield count, Split(tensor=count, pipeline=hosts)


def _best(request: Request, able: list[Part], hosts: int, count: int, needed: int) -> list[Part]:
    """The emptiest hosts, or with bin-packing the fullest that still do."""
    if request.spec.placement.strategy == Strategy.BINPACK:
        packed = [Part(part.view, tightest(part.room, count, needed)) for part in able]
        return sorted(packed, key=lambda part: part.room[0])[:hosts]
    emptiest = sorted(able, key=lambda part: part.room[count - 1], reverse=True)
    return [Part(part.view, part.room[:count]) for part in emptiest[:hosts]]


def _uneven(request: Request, kind: AcceleratorKind, parts: list[Part], hosts: int) -> Offer | None:
    """The hosts with the most accelerators, whatever number each has."""
    if request.stated:
        return None
    largest = sorted(parts, key=lambda part: len(part.room), reverse=True)[:hosts]
    chosen = largest
    for _ in range(ROUNDS):
        world = sum(len(part.room) for part in chosen)
        if len(chosen) < hosts or (request.count is not None and world != request.count):
            return None
        split = Split(pipeline=world)
        ask = request.demand.least(kind, split)
        if isinstance(ask, str):
            return None
        rooms = [[left for left in part.room if left >= ask.bytes] for part in chosen]
        if all(len(r) == len(part.room) for r, part in zip(rooms, chosen, strict=True)):
            full = request.demand.full(kind, split)
            is_full = not isinstance(full, str) and full.bytes <= min(r[-1] for r in rooms)
            return _offer(chosen, kind, split, ask, is_full)
        pairs = zip(chosen, rooms, strict=True)
        chosen = [Part(part.view, room) for part, room in pairs if room]
    return None


def _offer(
    parts: Sequence[Part], kind: AcceleratorKind, split: Split, ask: Ask, is_full: bool
) -> Offer:
    views, rooms = tuple(part.view for part in parts), tuple(part.room for part in parts)
    return Offer(views, rooms, kind, split, ask.bytes, is_full)
