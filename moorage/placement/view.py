"""The hosts as placement looks at them: what is there, sorted once for all questions."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.kinds import AcceleratorKind
from moorage.placement.room import Room, room_of
from moorage.placement.runtime import RuntimeChoice
from moorage.placement.snapshot import HostSnapshot


@dataclass(slots=True)
class HostView:
    """One host.

    Attributes:
        host: The host.
        room: What can still be claimed there.
        groups: By kind of accelerator the room of each, most first.
        runtime: What would start the engine, by accelerator type; filled by the filters.
    """

    host: HostSnapshot
    room: Room
    groups: dict[AcceleratorKind, list[int]]
    runtime: dict[str, RuntimeChoice]


def look_at(host: HostSnapshot) -> HostView:
    """Sort out what a host has."""
    room = room_of(host)
    return HostView(host=host, room=room, groups=_groups(host, room.memory), runtime={})


def select(view: HostView, indexes: frozenset[int]) -> HostView:
    """The same host with these accelerators only."""
    host = view.host
    chosen = [at for at, item in enumerate(host.accelerators) if item.index in indexes]
    groups: dict[AcceleratorKind, list[int]] = {}
    for at in chosen:
        item = host.accelerators[at]
        kind = AcceleratorKind(item.type, item.name, item.memory_total)
        groups.setdefault(kind, []).append(view.room.memory[at])
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return HostView(host=host, room=view.room, groups=groups, runtime=view.runtime)


def _groups(host: HostSnapshot, memory: list[int]) -> dict[AcceleratorKind, list[int]]:
    items = host.accelerators
    if not items:
        return {}
    kinds = [AcceleratorKind(item.type, item.name, item.memory_total) for item in items]
    first = kinds[0]
    if kinds.count(first) == len(kinds):
        return {first: sorted(memory, reverse=True)}
    groups: dict[AcceleratorKind, list[int]] = {}
    for kind, room in zip(kinds, memory, strict=True):
        groups.setdefault(kind, []).append(room)
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups
