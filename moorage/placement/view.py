"""The hosts as placement sees them: kinds of accelerators, and the room on each host."""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from moorage.common.units import human_bytes
from moorage.inventory.snapshot import VENDORS, Accelerator, HostSnapshot
from moorage.placement.fit import Room, room_of


class AcceleratorKind(NamedTuple):
    """A kind of accelerator: one rank needs the same memory on each accelerator of a kind.

    Attributes:
        name: Product name; empty = unknown.
        total: Bytes of memory.
    """

    type: str
    name: str
    total: int

    def __str__(self) -> str:
        return f"{self.name or self.type} ({human_bytes(self.total)})"

    def is_one_of(self, wanted: tuple[str, ...]) -> bool:
        """Whether a type, vendor or name pattern with `*` matches; an empty tuple matches all."""
        if not wanted:
            return True
        own = (self.type, VENDORS.get(self.type, ""))
        name = self.name.lower()
        return any(one.lower() in own or fnmatchcase(name, one.lower()) for one in wanted)


@lru_cache(maxsize=1024)
def kind_of(type: str, name: str, total: int) -> AcceleratorKind:
    """The kind with these attributes; cached, because dicts find identical objects faster."""
    return AcceleratorKind(type, name, total)


_facts_of_kind = attrgetter("type", "name", "memory_total")


@dataclass(slots=True)
class HostView:
    """One host with its room.

    Attributes:
        groups: Room on each accelerator by kind, largest first; accelerators of unknown memory are
            left out.
    """

    host: HostSnapshot
    room: Room
    groups: dict[AcceleratorKind, list[int]]


def view_of(host: HostSnapshot) -> HostView:
    """The view of a host, with its accelerators grouped by kind."""
    room = room_of(host)
    if not room.one_kind:
        return HostView(host, room, _mixed(host.accelerators, room.memory))
    kind = kind_of(*_facts_of_kind(host.accelerators[0]))
    # An accelerator without a known size is left out.
    return HostView(host, room, {kind: sorted(room.memory, reverse=True)} if kind.total else {})


def select(view: HostView, chosen: Set[tuple[str, int]]) -> HostView:
    """The same host with only these accelerators (type, index), and only kinds in the view."""
    pairs = zip(view.host.accelerators, view.room.memory, strict=True)
    taken = [pair for pair in pairs if (pair[0].type, pair[0].index) in chosen]
    groups = _mixed([item for item, _ in taken], [room for _, room in taken])
    return HostView(
        view.host, view.room, {kind: room for kind, room in groups.items() if kind in view.groups}
    )


def narrowed(view: HostView, groups: dict[AcceleratorKind, list[int]]) -> HostView:
    """The same host with only these groups of accelerators."""
    return HostView(view.host, view.room, groups)


def _mixed(
    accelerators: Iterable[Accelerator], memory: Iterable[int]
) -> dict[AcceleratorKind, list[int]]:
    groups: dict[AcceleratorKind, list[int]] = {}
    for item, room in zip(accelerators, memory, strict=True):
        kind = kind_of(*_facts_of_kind(item))
        if kind.total:  # an accelerator without a known size is left out
            groups.setdefault(kind, []).append(room)
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups
