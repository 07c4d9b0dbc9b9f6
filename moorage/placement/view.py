"""The hosts as placement looks at them: what is there, sorted once for all questions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from moorage.placement.kinds import AcceleratorKind
from moorage.placement.room import Room, room_of
from moorage.placement.snapshot import Accelerator, HostSnapshot


@dataclass(slots=True)
class HostView:
    """One host.

    Attributes:
        host: The host.
        room: What can still be claimed there.
        groups: By kind of accelerator the room of each, most first; without those of which no
            memory is known.
    """

    host: HostSnapshot
    room: Room
    groups: dict[AcceleratorKind, list[int]]


def look_at(host: HostSnapshot) -> HostView:
    """Sort out what a host has."""
    room = room_of(host)
    return HostView(host, room, _groups(host.accelerators, room.memory))


def select(view: HostView, chosen: Set[tuple[str, int]]) -> HostView:
    """The same host with these accelerators only, as far as they may be used there.

    Args:
        view: The host.
        chosen: Type and index of each.
    """
    pairs = zip(view.host.accelerators, view.room.memory, strict=True)
    taken = [pair for pair in pairs if (pair[0].type, pair[0].index) in chosen]
    groups = _mixed(tuple(item for item, _ in taken), [room for _, room in taken])
    return HostView(
        view.host, view.room, {kind: room for kind, room in groups.items() if kind in view.groups}
    )


def narrowed(view: HostView, groups: dict[AcceleratorKind, list[int]]) -> HostView:
    """The same host with these kinds of accelerators only."""
    return HostView(view.host, view.room, groups)


def at_once(view: HostView, room: list[int], ram: int) -> list[int]:
    """What each accelerator can give when all of these, and RAM, are taken together.

    It matters where they are taken from the same bytes.
    """
    if not view.host.unified_memory or not room:
        return room
    each = (view.room.ram - ram) // len(room)
    return [min(left, each) for left in room]


def _groups(items: tuple[Accelerator, ...], memory: list[int]) -> dict[AcceleratorKind, list[int]]:
    if not items:
        return {}
    first = items[0]
    kind, name, total = first.type, first.name, first.memory_total
    if not total:
        return _mixed(items, memory)
    for item in items:
        if item.memory_total != total or item.name != name or item.type != kind:
            return _mixed(items, memory)
    return {AcceleratorKind(kind, name, total): sorted(memory, reverse=True)}


def _mixed(items: tuple[Accelerator, ...], memory: list[int]) -> dict[AcceleratorKind, list[int]]:
    groups: dict[AcceleratorKind, list[int]] = {}
    for item, room in zip(items, memory, strict=True):
        if not item.memory_total:  # nothing can be said of an accelerator that hides its memory
            continue
        kind = AcceleratorKind(item.type, item.name, item.memory_total)
        groups.setdefault(kind, []).append(room)
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups
