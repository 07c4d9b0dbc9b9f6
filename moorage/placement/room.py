"""The resource model: what can still be claimed on a host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.common.values import fields
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot

ACCELERATOR, RAM = Resource.ACCELERATOR, Resource.RAM
CORES, PORT = Resource.CORES, Resource.PORT

Facts = dict[str, Any]
"""Fields of a value by name."""

Amounts = dict[int | Resource, int]
"""By index what is claimed of an accelerator, by its name what is claimed of another resource."""

NOTHING: Amounts = {}


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
    return room_with(host, list(map(fields, host.accelerators)))


def room_with(host: HostSnapshot, accelerators: Sequence[Facts]) -> Room:
    """The same, where the fields of the accelerators have been read already."""
    there = fields(host)
    held, pending = _held(there["claims"]) if there["claims"] else (NOTHING, NOTHING)
    total, free, reserve = there["ram_total"], there["ram_free"], there["ram_reserve"]
    ram = _left(total, free, reserve, held.get(RAM, 0), pending.get(RAM, 0))
    cores = max(0, there["cpus"] - held[CORES]) if CORES in held else there["cpus"]
    memory = _memory(accelerators, there["accelerator_reserve"], held, pending)
    room = Room(ram, cores, memory)
    if there["unified_memory"]:
        _share_one_pool(host, room)
    return room


def _held(claims: Iterable[Claim]) -> tuple[Amounts, Amounts]:
    """Amounts by accelerator, and of the other resources: of all claims, and of pending ones."""
    held: Amounts = {}
    pending: Amounts = {}
    for claim in map(fields, claims):
        resource = claim["resource"]
        if resource is PORT:
            continue
        key = claim["index"] if resource is ACCELERATOR else resource
        held[key] = held.get(key, 0) + claim["amount"]
        if claim["pending"]:
            pending[key] = pending.get(key, 0) + claim["amount"]
    return held, pending


def _memory(
    accelerators: Sequence[Facts], reserve: int, held: Amounts, pending: Amounts
) -> list[int]:
    memory = []
    for item in accelerators:
        total, free = item["memory_total"], item["memory_free"]
        if held and (index := item["index"]) in held:
            free = _left(total, free, reserve, held[index], pending.get(index, 0))
        elif reserve:
            free = _left(total, free, reserve, 0, 0)
        memory.append(free if free < total else total)
    return memory


def _left(total: int, free: int, reserve: int, held: int, pending: int) -> int:
    strangers = total - free - (held - pending)
    left = total - held - (reserve if reserve > strangers else strangers)
    return left if left > 0 else 0


def _share_one_pool(host: HostSnapshot, room: Room) -> None:
    """Where accelerators use the host's RAM, whatever one side takes is gone for the other."""
    held, pending = _held(claim for claim in host.claims if claim.resource is not CORES)
    taken, waiting = sum(held.values()), sum(pending.values())
    kept = host.ram_reserve + host.accelerator_reserve * len(host.accelerators)
    room.ram = _left(host.ram_total, host.ram_free, kept, taken, waiting)
    room.memory = [min(left, room.ram) for left in room.memory]
