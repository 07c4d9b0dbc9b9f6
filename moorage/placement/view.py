"""The hosts as placement sees them: kinds of accelerators, and the room on each host."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from moorage.common.units import human_bytes
from moorage.inventory.devices import CUDA
from moorage.inventory.snapshot import VENDORS, Accelerator, HostSnapshot
from moorage.placement.fit import AcceleratorFacts, Room, room_of

TOLERANCE = 100
"""Sizes of one product that differ by at most this fraction (1 / n) are one kind.

What a driver keeps for itself depends on its version, and its tools round to MiB.
"""


class AcceleratorKind(NamedTuple):
    """A kind of accelerator: one rank needs the same memory on each accelerator of a kind.

    Attributes:
        name: Product name; empty = unknown.
        total: Bytes of memory, of the smallest in the fleet.
        family: Chip family, by which images differ; empty = unknown, or in the name.
    """

    type: str
    name: str
    total: int
    family: str = ""

    def __str__(self) -> str:
        family = "" if self.type == CUDA else self.family
        return f"{self.name or family or self.type} ({human_bytes(self.total)})"

    def is_one_of(self, wanted: tuple[str, ...]) -> bool:
        """Whether a type, vendor or name pattern with `*` matches; an empty tuple matches all."""
        if not wanted:
            return True
        own = (self.type, VENDORS.get(self.type, ""))
        name = self.name.lower()
        return any(one.lower() in own or fnmatchcase(name, one.lower()) for one in wanted)


@lru_cache(maxsize=1024)
def kind_of(type: str, name: str, total: int, family: str) -> AcceleratorKind:
    """The kind with these attributes; cached, because dicts find identical objects faster.

    The name of an NVIDIA GPU tells its family, which old drivers and fleet files leave out.
    """
    return AcceleratorKind(type, name, total, "" if name and type == CUDA else family)


class Chip(NamedTuple):
    """What runtimes and images need to know about an accelerator.

    Attributes:
        family: Chip family; empty = unknown.
        runtime: Newest accelerator runtime that the driver runs; empty = unknown.
    """

    type: str
    family: str = ""
    runtime: str = ""


def chip_of(item: Accelerator) -> Chip:
    """The chip of an accelerator."""
    return Chip(*facts_of_chip(item))


_facts_of_kind = attrgetter("type", "name", "memory_total", "family")
facts_of_chip = attrgetter("type", "family", "runtime_version")

Chips = Mapping[AcceleratorKind, Chip]
Smallest = Mapping[AcceleratorKind, AcceleratorKind]
NONE: Smallest = {}


@dataclass(slots=True)
class HostView:
    """One host with its room.

    Attributes:
        groups: Room on each accelerator by kind, largest first; accelerators of unknown memory are
            left out.
        smallest: The kind that a slightly larger one belongs to.
        chips: The chip of the first accelerator of each kind.
    """

    host: HostSnapshot
    room: Room
    groups: dict[AcceleratorKind, list[int]]
    smallest: Smallest
    chips: Chips

    def kind_of(self, item: Accelerator) -> AcceleratorKind:
        """The kind of an accelerator of the host."""
        return _kind_in(self.smallest, item)


def views_of(hosts: Sequence[HostSnapshot]) -> list[HostView]:
    """The views of all hosts, with sizes of one product that hardly differ as one kind."""
    views = [view_of(host) for host in hosts]
    smallest = _smallest(kinds_of(views))
    if not smallest:
        return views
    return [
        view if smallest.keys().isdisjoint(view.groups) else view_of(view.host, smallest)
        for view in views
    ]


def kinds_of(views: Iterable[HostView]) -> set[AcceleratorKind]:
    """The kinds of accelerators that there are."""
    return set().union(*[view.groups for view in views])  # five times as fast as a loop


def view_of(host: HostSnapshot, smallest: Smallest = NONE) -> HostView:
    """The view of a host, with its accelerators grouped by kind."""
    room = room_of(host)
    if smallest or not room.only:
        groups = _groups(host.accelerators, room.memory, smallest)
        items = reversed(host.accelerators)  # of each kind the first one stays
        chips = {_kind_in(smallest, item): chip_of(item) for item in items}
        return HostView(host, room, groups, smallest, chips)
    kind, chip = _only_kind(room.only)
    # An accelerator without a known size is left out.
    groups = {kind: sorted(room.memory, reverse=True)} if kind.total else {}
    return HostView(host, room, groups, smallest, chip)


@lru_cache(maxsize=1024)
def _only_kind(facts: AcceleratorFacts) -> tuple[AcceleratorKind, Chips]:
    """The kind of such accelerators, and its chip, as `HostView.chips` of a host without others."""
    type, name, total, family, runtime = facts
    kind = kind_of(type, name, total, family)
    return kind, {kind: Chip(type, family, runtime)}


def level_room(room: int, item: Accelerator, kind: AcceleratorKind) -> int:
    """The room on an accelerator, in bytes of the smallest of its kind.

    An engine takes the same fraction of each accelerator, thus more of a larger one.
    """
    total = item.memory_total
    return room if total == kind.total else room * kind.total // total


def bytes_on(item: Accelerator, kind: AcceleratorKind, amount: int) -> int:
    """Bytes that an engine takes of an accelerator, if `amount` of the smallest of its kind."""
    total = item.memory_total
    return amount if total == kind.total else -(-amount * total // kind.total)


def select(view: HostView, chosen: Set[tuple[str, int]]) -> HostView:
    """The same host with only these accelerators (type, index), and only kinds in the view."""
    pairs = zip(view.host.accelerators, view.room.memory, strict=True)
    taken = [pair for pair in pairs if (pair[0].type, pair[0].index) in chosen]
    items, memory = [item for item, _ in taken], [room for _, room in taken]
    groups = _groups(items, memory, view.smallest)
    return narrowed(view, {kind: room for kind, room in groups.items() if kind in view.groups})


def without_occupied(view: HostView) -> HostView:
    """The same host without accelerators that let in one process at a time, and are claimed."""
    closed = view.room.occupied
    if not closed:
        return view
    items = view.host.accelerators
    return select(view, {(item.type, item.index) for item in items if item.index not in closed})


def narrowed(view: HostView, groups: dict[AcceleratorKind, list[int]]) -> HostView:
    """The same host with only these groups of accelerators."""
    return HostView(view.host, view.room, groups, view.smallest, view.chips)


def _kind_in(smallest: Smallest, item: Accelerator) -> AcceleratorKind:
    kind = kind_of(*_facts_of_kind(item))
    return smallest.get(kind, kind)


def _smallest(kinds: Set[AcceleratorKind]) -> dict[AcceleratorKind, AcceleratorKind]:
    """For each kind that hardly differs from a smaller one, the smallest of them."""
    found: dict[AcceleratorKind, AcceleratorKind] = {}
    least: AcceleratorKind | None = None
    for kind in sorted(kinds, key=attrgetter("type", "name", "family", "total")):
        if least is None or not _is_alike(kind, least):
            least = kind
        else:
            found[kind] = least
    return found


def _is_alike(kind: AcceleratorKind, least: AcceleratorKind) -> bool:
    same = kind.name and (*kind[:2], kind.family) == (*least[:2], least.family)
    return bool(same) and (kind.total - least.total) * TOLERANCE <= least.total


def _groups(
    accelerators: Iterable[Accelerator], memory: Iterable[int], smallest: Smallest
) -> dict[AcceleratorKind, list[int]]:
    groups: dict[AcceleratorKind, list[int]] = {}
    for item, room in zip(accelerators, memory, strict=True):
        kind = _kind_in(smallest, item)
        if kind.total:  # an accelerator without a known size is left out
            groups.setdefault(kind, []).append(level_room(room, item, kind))
    for rooms in groups.values():
        rooms.sort(reverse=True)
    return groups
