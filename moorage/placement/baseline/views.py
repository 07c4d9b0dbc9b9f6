"""The fleet by accelerator type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.allocatable import Room


@dataclass(frozen=True, slots=True)
class View:
    """What a strategy sees of one host.

    Attributes:
        room: The host.
        accelerators: Those that the strategy may take, in fleet order.
        free: Bytes left of them, by index; what is missing counts as 0.
    """

    room: Room
    accelerators: tuple[Accelerator, ...]
    free: Mapping[int, int]

    def ratio(self, item: Accelerator) -> float:
        """The part of an accelerator that is left."""
        return self.free.get(item.index, 0) / item.memory_total


def by_type(rooms: Iterable[Room], first_look: bool) -> dict[str, list[View]]:
    """Group hosts by accelerator type, in the order in which types and hosts appear.

    The peer's defect 5 is part of the rules: of a host with several types only the last type is
    ever usable. The first strategy that groups the fleet still lists such a host under each of its
    types, but with the last type's accelerators and nothing left on them.
    """
    groups: dict[str, list[View]] = {}
    for room in rooms:
        types = list(dict.fromkeys(item.type for item in room.accelerators))
        for name in types if first_look else types[-1:]:
            groups.setdefault(name, []).append(_view(room, name, types[-1]))
    return groups


def _view(room: Room, name: str, usable: str) -> View:
    items = tuple(item for item in room.accelerators if item.type == usable)
    return View(room, items, room.free_of_type(name) if name == usable else {})
