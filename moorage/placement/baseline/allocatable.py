"""What is left on each host, and what runs there: one pass over the claims."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, HostSnapshot


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
        host: Its name.
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


NOTHING = Load({}, 0)


def rooms(hosts: Iterable[HostSnapshot], same_model: Collection[str]) -> tuple[Room, ...]:
    """Look once at every host and claim.

    Args:
        hosts: The fleet, in its order. What devices report as free does not count here.
        same_model: Releases of the model that is being placed.
    """
    return tuple(_room(host, same_model) for host in hosts)


def _room(host: HostSnapshot, same_model: Collection[str]) -> Room:
    held: Counter[int] = Counter()
    ram = 0
    for claim in host.claims:
        if claim.resource is Resource.ACCELERATOR:
            held[claim.index] += claim.amount
        elif claim.resource is Resource.RAM:
            ram += claim.amount
    same, others = _loads(host.claims, same_model)
    items = tuple(item for item in host.accelerators if item.memory_total)
    reserve = host.accelerator_reserve
    return Room(
        host=host.name,
        accelerators=items,
        free=tuple(max(item.memory_total - held[item.index] - reserve, 0) for item in items),
        ram=max(host.ram_total - ram - host.ram_reserve, 0),
        same=same,
        others=others,
        releases=frozenset(claim.release for claim in host.claims),
    )


def _loads(claims: Sequence[Claim], same_model: Collection[str]) -> tuple[Load, Load]:
    if not claims:
        return NOTHING, NOTHING
    by_release: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_release[claim.release].append(claim)
    counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    totals = [0, 0]
    for release, own in by_release.items():
        side = 0 if release in same_model else 1
        indexes = [claim.index for claim in own if claim.resource is Resource.ACCELERATOR]
        counts[side].update(indexes)
        totals[side] += len(indexes) or 1
    return Load(counts[0], totals[0]), Load(counts[1], totals[1])
