"""The resource model: what can still be claimed on a host."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.claims import Resource
from moorage.placement.snapshot import HostSnapshot


@dataclass(slots=True)
class Room:
    """What can still be claimed on one host.

    Attributes:
        ram: Bytes of RAM.
        cores: Processor cores.
        memory: Bytes of each accelerator, in the host's order.
    """

    ram: int
    cores: int
    memory: list[int]


def room_of(host: HostSnapshot) -> Room:
    """Total less claims less what is left alone, and never more than is really free.

    What is in use beyond the claims of proven releases belongs to others: other processes, or an
    engine that is loading and has not taken all of its claim yet. It counts once against the
    reserve, for which it may be the reason, and never against a claim that is still pending.
    """
    room = _claimed(host) if host.claims else _unclaimed(host)
    if host.unified_memory:
        _share_one_pool(host, room)
    return room


def _unclaimed(host: HostSnapshot) -> Room:
    reserve = host.accelerator_reserve
    return Room(
        ram=max(0, min(host.ram_free, host.ram_total - host.ram_reserve)),
        cores=host.cpus,
        memory=[
            max(0, min(item.memory_free, item.memory_total - reserve)) for item in host.accelerators
        ],
    )


def _claimed(host: HostSnapshot) -> Room:
    held: dict[tuple[Resource, int], int] = {}
    settled: dict[tuple[Resource, int], int] = {}
    for claim in host.claims:
        key = (claim.resource, claim.index)
        held[key] = held.get(key, 0) + claim.amount
        if not claim.pending:
            settled[key] = settled.get(key, 0) + claim.amount
    ram, cores = (Resource.RAM, 0), (Resource.CORES, 0)
    reserve, memory = host.accelerator_reserve, []
    for item in host.accelerators:
        key = (Resource.ACCELERATOR, item.index)
        total, free = item.memory_total, item.memory_free
        memory.append(_left(total, free, reserve, held.get(key, 0), settled.get(key, 0)))
    return Room(
        ram=_left(
            host.ram_total, host.ram_free, host.ram_reserve, held.get(ram, 0), settled.get(ram, 0)
        ),
        cores=max(0, host.cpus - held.get(cores, 0)),
        memory=memory,
    )


def _left(total: int, free: int, reserve: int, held: int, settled: int) -> int:
    strangers = total - free - settled
    return max(0, total - held - max(reserve, strangers))


def _share_one_pool(host: HostSnapshot, room: Room) -> None:
    """Where accelerators use the host's RAM, whatever one side takes is gone for the other."""
    held = sum(c.amount for c in host.claims if c.resource == Resource.ACCELERATOR)
    kept = host.accelerator_reserve * len(host.accelerators)
    room.ram = max(0, room.ram - held - kept)
    room.memory = [min(left, room.ram) for left in room.memory]
