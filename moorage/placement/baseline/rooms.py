"""The fleet as the rules see it: remaining resources, running replicas and types of each host."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.placement.fit import claimed_amounts


@dataclass(frozen=True, slots=True)
class Load:
    """Replicas on a host, counted once for each accelerator that they hold.

    Attributes:
        accelerators: Count by accelerator index.
        total: The sum of these counts, plus 1 for each release that holds no accelerator there.
    """

    accelerators: Mapping[int, int]
    total: int


@dataclass(frozen=True, slots=True)
class Room:
    """One host with its remaining resources.

    Attributes:
        accelerators: Accelerators of known memory, in fleet order.
        free: Bytes left of each accelerator, in the same order. Claims are counted by index alone,
            so two types that share an index share its claims.
        ram: Bytes of RAM left.
        same: Replicas of the model that is being placed.
    """

    host: str
    accelerators: tuple[Accelerator, ...]
    free: tuple[int, ...]
    ram: int
    same: Load
    others: Load
    releases: frozenset[str]

    @property
    def free_by_index(self) -> dict[int, int]:
        """Bytes left by index; if two types share an index, the last counts."""
        return {item.index: free for item, free in zip(self.accelerators, self.free, strict=True)}

    def free_of_type(self, name: str) -> dict[int, int]:
        """Bytes left of the accelerators of one type, by index."""
        pairs = zip(self.accelerators, self.free, strict=True)
        return {item.index: free for item, free in pairs if item.type == name}


@dataclass(frozen=True, slots=True)
class View:
    """One host as a strategy sees it.

    Attributes:
        accelerators: Accelerators that the strategy may take, in its order of preference.
        free: Bytes left by accelerator index; a missing index counts as 0.
    """

    room: Room
    accelerators: tuple[Accelerator, ...]
    free: Mapping[int, int]

    def left(self, item: Accelerator) -> int:
        """Bytes left of an accelerator."""
        return self.free.get(item.index, 0)

    def ratio(self, item: Accelerator) -> float:
        """The fraction of an accelerator's memory that is left."""
        return self.left(item) / item.memory_total


Groups = Mapping[str, Sequence[View]]
"""Hosts by accelerator type."""


def rooms(hosts: Iterable[HostSnapshot], same_model: Collection[str]) -> tuple[Room, ...]:
    """The remaining resources of each host by its claims, whatever devices report as free.

    `same_model` are the releases of the model that is being placed.
    """
    return tuple(_room(host, same_model) for host in hosts)


def by_type(rooms: Iterable[Room], all_types: bool) -> dict[str, list[View]]:
    """Group hosts by accelerator type, in the order in which types and hosts appear.

    If a host has several types, only the last type is usable (the peer's defect 5).

    With `all_types`, which the first strategy to group the fleet uses, the host is also listed
    under its other types, with the accelerators of its last type and 0 bytes left on them.
    """
    groups: dict[str, list[View]] = {}
    for room in rooms:
        types = list(dict.fromkeys(item.type for item in room.accelerators))
        for name in types if all_types else types[-1:]:
            items = tuple(item for item in room.accelerators if item.type == types[-1])
            free = room.free_of_type(name) if name == types[-1] else {}
            groups.setdefault(name, []).append(View(room, items, free))
    return groups


def _room(host: HostSnapshot, same_model: Collection[str]) -> Room:
    claimed, _ = claimed_amounts(host.claims)
    releases = frozenset(claim.release for claim in host.claims)
    items = tuple(item for item in host.accelerators if item.memory_total)
    reserve = host.accelerator_reserve
    return Room(
        host=host.name,
        accelerators=items,
        free=tuple(max(i.memory_total - claimed.get(i.index, 0) - reserve, 0) for i in items),
        ram=max(host.ram_total - claimed.get(Resource.RAM, 0) - host.ram_reserve, 0),
        same=_load(host.claims, releases.intersection(same_model)),
        others=_load(host.claims, releases.difference(same_model)),
        releases=releases,
    )


def _load(claims: Sequence[Claim], releases: frozenset[str]) -> Load:
    own = [claim for claim in claims if claim.release in releases]
    on_accelerators = [claim for claim in own if claim.resource is Resource.ACCELERATOR]
    without = releases.difference(claim.release for claim in on_accelerators)
    counts = Counter(claim.index for claim in on_accelerators)
    return Load(counts, counts.total() + len(without))
