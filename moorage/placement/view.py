"""The hosts as placement looks at them: what is there, sorted once for all questions."""

from __future__ import annotations

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
        groups: By kind of accelerator the room of each, most first.
    """

    host: HostSnapshot
    room: Room
    groups: dict[AcceleratorKind, list[int]]


def look_at(host: HostSnapshot) -> HostView:
    """Sort out what a host has."""
    room = room_of(host)
    return HostView(host, room, _groups(host.accelerators, room.memory))


def select(view: HostView, indexes: frozenset[int]) -> HostView:
    """The same host with these accelerators only."""
    chosen = [at for at, item in enumerate(view.host.accelerators) if item.index in indexes]
    items = tuple(view.host.accelerators[at] for at in chosen)
    groups = _groups(items, [view.room.memory[at] for at in chosen])
    return HostView(view.host, view.room, groups)


def narrowed(view: HostView, groups: dict[AcceleratorKind, list[int]]) -> HostView:
    """The same host with these kinds of accelerators only."""
    return HostView(view.host, view.room, groups)


def _groups(items: tuple[Accelerator, ...], memory: list[int]) -> dict[AcceleratorKind, list[int]]:
    if not items:
        return {}
    first = items[0]
    kind, name, total = first.type, first.name, first.memory_total
    for item in items:
        if item.memory_total != total or item.name != name or item.type != kind:
            return _mixed(items, memory)
    return {AcceleratorKind(kind, name, total): sorted(memory, reverse=True)}


def _mixed(items: tuple[Accelerator, ...], memory: list[int]) -> dict[AcceleratorKind, list[int]]:
    groups: dict[AcceleratorKind, list[int]] = {}
    for item, room in zip(items, memory, strict=True):
        kind = AcceleratorKind(item.type, item.name, item.memory_total)
        groups.setdefault(kind, []).append(room)
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups
