"""The fleet as the rules see it: what is left on each host, what runs there, and its types."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.placement.fit import claimed_amounts


@dataclass(frozen=True, slots=True)
class Load:
    """What runs on a host, counted once for each accelerator that it holds.

    Attributes:
        accelerators: Count by accelerator index.
        total: The sum, and one for each release that holds no accelerator there.
    """

    accelerators: Mapping[int, int]
    total: int


@dataclass(frozen=True, slots=True)
class Room:
    """One host with what is left of it.

    Attributes:
        accelerators: Those with memory, in fleet order.
        free: Bytes left of each accelerator, in the same order. Claims are booked by index alone,
            so two types that share an index share its claims.
        ram: Bytes of RAM left.
        same: Replicas of the model that is being placed.
        others: Everything else.
        releases: All that hold something there.
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
        """Bytes left by index; of two types that share an index, the last counts."""
        return {item.index: free for item, free in zip(self.accelerators, self.free, strict=True)}

    def free_of_type(self, name: str) -> dict[int, int]:
        """Bytes left of the accelerators of one type, by index."""
        pairs = zip(self.accelerators, self.free, strict=True)
        return {item.index: free for item, free in pairs if item.type == name}


@dataclass(frozen=True, slots=True)
class View:
    """What a strategy sees of one host.

    Attributes:
        accelerators: Those that the strategy may take, in fleet order.
        free: Bytes left of them, by index; what is missing counts as 0.
    """

    room: Room
    accelerators: tuple[Accelerator, ...]
    free: Mapping[int, int]

    def left(self, item: Accelerator) -> int:
        """Bytes left of an accelerator."""
        return self.free.get(item.index, 0)

    def ratio(self, item: Accelerator) -> float:
        """The part of an accelerator that is left."""
        return self.left(item) / item.memory_total


Groups = Mapping[str, Sequence[View]]
"""Hosts by accelerator type."""

NOTHING = Load({}, 0)


def rooms(hosts: Iterable[HostSnapshot], same_model: Collection[str]) -> tuple[Room, ...]:
    """What is left on each host by its claims. What devices report as free does not count.

    `same_model` are the releases of the model that is being placed.
    """
    return tuple(_room(host, same_model) for host in hosts)


def by_type(rooms: Iterable[Room], all_types: bool) -> dict[str, list[View]]:
    """Group hosts by accelerator type, in the order in which types and hosts appear.

    Of a host with several types only the last type is ever usable (the peer's defect 5).

    With `all_types` it is listed under its other types too, as it is for the first strategy that
    groups the fleet. It has its last type's accelerators there, with nothing left on them.
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
    if not releases:
        return NOTHING
    own = [claim for claim in claims if claim.release in releases]
    on_accelerators = [claim for claim in own if claim.resource is Resource.ACCELERATOR]
    without = releases.difference(claim.release for claim in on_accelerators)
    counts = Counter(claim.index for claim in on_accelerators)
    return Load(counts, counts.total() + len(without))
