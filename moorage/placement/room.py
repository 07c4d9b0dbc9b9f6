"""The resource model: what can still be claimed on a host."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.claims import Resource
from moorage.placement.snapshot import HostSnapshot

ACCELERATOR, RAM, PORT = Resource.ACCELERATOR, Resource.RAM, Resource.PORT

ALL, SETTLED = 0, 1
"""Places in what is held of a resource: by all releases, and by those that are proven to run."""


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
    room = _unclaimed(host)
    if host.claims:
        _take_claims(host, room)
    if host.unified_memory:
        _share_one_pool(host, room)
    return room


def _unclaimed(host: HostSnapshot) -> Room:
    reserve, memory = host.accelerator_reserve, []
    for item in host.accelerators:
        free, left = item.memory_free, item.memory_total - reserve
        memory.append(free if free < left else left)
    if reserve and memory:
        memory = [left if left > 0 else 0 for left in memory]
    ram, left = host.ram_free, host.ram_total - host.ram_reserve
    return Room(ram=max(0, min(ram, left)), cores=host.cpus, memory=memory)


def _take_claims(host: HostSnapshot, room: Room) -> None:
    ram, cores = [0, 0], [0, 0]
    memory: dict[int, list[int]] = {}
    for claim in host.claims:
        resource, amount = claim.resource, claim.amount
        if resource is PORT:
            continue
        if resource is ACCELERATOR:
            held = memory.setdefault(claim.index, [0, 0])
        else:
            held = ram if resource is RAM else cores
        held[ALL] += amount
        held[SETTLED] += 0 if claim.pending else amount
    if ram[ALL]:
        room.ram = _left(host.ram_total, host.ram_free, host.ram_reserve, ram)
    room.cores = max(0, host.cpus - cores[ALL])
    if memory:
        for at, item in enumerate(host.accelerators):
            if item.index in memory:
                room.memory[at] = _left(
                    item.memory_total,
                    item.memory_free,
                    host.accelerator_reserve,
                    memory[item.index],
                )


def _left(total: int, free: int, reserve: int, held: list[int]) -> int:
    strangers = total - free - held[SETTLED]
    return max(0, total - held[ALL] - max(reserve, strangers))


def _share_one_pool(host: HostSnapshot, room: Room) -> None:
    """Where accelerators use the host's RAM, whatever one side takes is gone for the other."""
    held = [0, 0]
    for claim in host.claims:
        if claim.resource in (RAM, ACCELERATOR):
            held[ALL] += claim.amount
            held[SETTLED] += 0 if claim.pending else claim.amount
    kept = host.ram_reserve + host.accelerator_reserve * len(host.accelerators)
    room.ram = _left(host.ram_total, host.ram_free, kept, held)
    room.memory = [min(left, room.ram) for left in room.memory]
