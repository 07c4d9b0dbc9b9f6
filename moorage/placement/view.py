"""The hosts as placement sees them: the room on each, by kind of accelerator."""

from collections.abc import Set
from dataclasses import dataclass

from moorage.inventory.equipment import Groups, grouped
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.fit import Room, room_of


@dataclass(slots=True)
class HostView:
    """One host."""

    host: HostSnapshot
    room: Room
    groups: Groups


def view_of(host: HostSnapshot) -> HostView:
    """Sort the accelerators of a host by kind."""
    room, equipment = room_of(host), host.equipment
    untouched = room.memory is equipment.room
    groups = equipment.groups if untouched else grouped(equipment.kinds, room.memory)
    return HostView(host, room, groups)


def select(view: HostView, chosen: Set[tuple[str, int]]) -> HostView:
    """The same host with these accelerators (type, index) only, as far as they may be used."""
    items, kinds = view.host.accelerators, view.host.equipment.kinds
    taken = [at for at, item in enumerate(items) if (item.type, item.index) in chosen]
    groups = grouped([kinds[at] for at in taken], [view.room.memory[at] for at in taken])
    return narrowed(view, {kind: room for kind, room in groups.items() if kind in view.groups})


def narrowed(view: HostView, groups: Groups) -> HostView:
    """The same host with these kinds of accelerators only."""
    return HostView(view.host, view.room, groups)
