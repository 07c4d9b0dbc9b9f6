"""Computes what can be claimed on a host and what fits, for proposals and commits alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.common.values import fields
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot

ACCELERATOR, RAM = Resource.ACCELERATOR, Resource.RAM
CORES, PORT = Resource.CORES, Resource.PORT

Amounts = dict[int | Resource, int]
"""Claimed amounts: of an accelerator by its index, of another resource by its name."""

NOTHING: Amounts = {}

ALL_PORTS = 2**16

AcceleratorFacts = tuple[str, str, int, str, str]
"""Type, name, bytes of memory, family, and the driver's newest runtime."""


@dataclass(slots=True)
class Room:
    """Claimable resources of one host.

    Attributes:
        memory: Bytes by accelerator, in the host's order.
        only: The facts that all accelerators share; None = they differ, or there are none.
        occupied: Indexes of accelerators that let in one process at a time, and are claimed.
    """

    ram: int
    cores: int
    memory: list[int]
    only: AcceleratorFacts | None
    occupied: tuple[int, ...]


def room_of(host: HostSnapshot) -> Room:
    """The room on a host: total minus claims minus the reserve, and never more than is really free.

    An accelerator that lets in one process at a time has no room once anything is claimed on it.

    Use beyond the claims that are not pending belongs to strangers: other processes, or an engine
    that is still loading. The larger of that use and the reserve is deducted, since the reserve may
    be meant for it. Pending claims do not reduce that use.
    """
    there = fields(host)
    held, pending, ram_held, ram_pending, cores = NOTHING, NOTHING, 0, 0, there["cpus"]
    if there["claims"]:  # most hosts of a fleet may have none
        held, pending = claimed_amounts(there["claims"])
        ram_held, ram_pending = held.get(RAM, 0), pending.get(RAM, 0)
        cores = max(0, cores - held.get(CORES, 0))
    ram = _left(there["ram_total"], there["ram_free"], there["ram_reserve"], ram_held, ram_pending)
    memory, only, occupied = _memory(there, held, pending)
    room = Room(ram, cores, memory, only, occupied)
    if there["unified_memory"]:
        _share_one_pool(host, room)
    return room


def claimed_amounts(claims: Iterable[Claim]) -> tuple[Amounts, Amounts]:
    """Amounts by accelerator index or resource: of all claims, and of pending claims."""
    held: Amounts = {}
    pending: Amounts = {}
    for claim in claims:
        resource = claim.resource
        if resource is PORT:
            continue
        key, amount = claim.index if resource is ACCELERATOR else resource, claim.amount
        held[key] = held.get(key, 0) + amount
        if claim.pending:
            pending[key] = pending.get(key, 0) + amount
    return held, pending


def _memory(
    there: dict[str, Any], held: Amounts, pending: Amounts
) -> tuple[list[int], AcceleratorFacts | None, tuple[int, ...]]:
    """The room's `memory`, `only` and `occupied`: in one pass, as fleets are large.

    `there` holds the fields of the host.
    """
    reserve = there["accelerator_reserve"]
    memory: list[int] = []
    occupied: tuple[int, ...] = ()
    is_less = bool(reserve or held)
    type = name = size = family = facts = None
    kinds = 0
    for item in map(fields, there["accelerators"]):
        total, free = item["memory_total"], item["memory_free"]
        if (
            total != size
            or item["name"] != name
            or item["family"] != family
            or item["type"] != type
        ):
            type, name, size, family = item["type"], item["name"], total, item["family"]
            facts = (type, name, size, family, item["runtime_version"])
            kinds += 1
        if is_less and (reserve or item["index"] in held):
            index = item["index"]
            free = _left(total, free, reserve, held.get(index, 0), pending.get(index, 0))
            if item["exclusive"] and index in held:
                free, occupied = 0, (*occupied, index)
        memory.append(free if free < total else total)
    return memory, facts if kinds == 1 else None, occupied


def _left(total: int, free: int, reserve: int, held: int, pending: int) -> int:
    strangers = total - free - (held - pending)
    left = total - held - (reserve if reserve > strangers else strangers)
    return left if left > 0 else 0


def _share_one_pool(host: HostSnapshot, room: Room) -> None:
    """Limit RAM and accelerator memory to their common pool, where both use the same bytes."""
    held, pending = claimed_amounts(claim for claim in host.claims if claim.resource is not CORES)
    taken, waiting = sum(held.values()), sum(pending.values())
    kept = host.ram_reserve + host.accelerator_reserve * len(host.accelerators)
    room.ram = _left(host.ram_total, host.ram_free, kept, taken, waiting)
    room.memory = [min(left, room.ram) for left in room.memory]


def occupied_note(indexes: Sequence[int]) -> str:
    """Why occupied accelerators have no room; empty = there are none."""
    if not indexes:
        return ""
    if len(indexes) == 1:
        return f"accelerator {indexes[0]} lets in one process at a time, and is claimed"
    names = ", ".join(map(str, sorted(indexes)))
    return f"accelerators {names} let in one process at a time, and are claimed"


def misfits(
    host: HostSnapshot, wanted: Iterable[Claim], *, overcommit: bool = False
) -> tuple[str, ...]:
    """Why claims do not fit on a host, with numbers; empty = they fit.

    Claims on the same resource are added up. `host.claims` must hold the claims of all other
    releases. With `overcommit`, accelerators may be claimed beyond their memory.
    """
    needs: dict[tuple[Resource, int], int] = {}
    for claim in wanted:
        key = (claim.resource, claim.index)
        needs[key] = needs.get(key, 0) + claim.amount
    if not needs:
        return ()
    room = room_of(host)
    memory = {i.index: left for i, left in zip(host.accelerators, room.memory, strict=True)}
    reasons = []
    for (resource, index), amount in needs.items():
        if resource == Resource.PORT:
            reasons.append(_port_misfit(host, index, amount))
            continue
        if resource == Resource.ACCELERATOR and index in room.occupied:
            note = _holder_note(host, resource, index)
            reasons.append("; ".join(filter(None, (occupied_note([index]), note))))
            continue
        if overcommit and resource == Resource.ACCELERATOR and index in memory:
            continue
        others = {Resource.RAM: room.ram, Resource.CORES: room.cores}
        available = others.get(resource, memory.get(index, 0))
        if amount > available:
            reasons.append(_short(host, resource, index, amount, available))
    reasons.append(_pool_misfit(host, room, needs))
    return tuple(reason for reason in reasons if reason)


def allocatable_memory(host: HostSnapshot, index: int) -> int:
    """Bytes of an accelerator that can still be claimed."""
    pairs = zip(host.accelerators, room_of(host).memory, strict=True)
    return next((left for item, left in pairs if item.index == index), 0)


def free_ports(host: HostSnapshot, count: int, taken: Sequence[int] = ()) -> list[int]:
    """The lowest free ports of a host's range; fewer than `count` when it is exhausted."""
    low, high = host.port_range
    used = set(host.ports_in_use) | set(taken)
    used |= {claim.index for claim in host.claims if claim.resource == Resource.PORT}
    free = (port for port in range(low, high + 1) if port not in used)
    return [port for port, _ in zip(free, range(count), strict=False)]


def free_block(
    hosts: Sequence[HostSnapshot], count: int, taken: Sequence[int] = ()
) -> Sequence[int]:
    """The lowest consecutive ports that are free on all hosts; none = there are not so many."""
    common = set.intersection(*(set(free_ports(host, ALL_PORTS, taken)) for host in hosts))
    blocks = (range(port, port + count) for port in sorted(common))
    return next((block for block in blocks if common.issuperset(block)), ())


def holders(host: HostSnapshot, resource: Resource, index: int | None = None) -> tuple[str, ...]:
    """Releases that hold part of a resource; of any index if none is given."""
    names = {
        claim.release
        for claim in host.claims
        if claim.resource is resource and (index is None or claim.index == index)
    }
    names.discard("")
    return tuple(sorted(names))


def port_refusal(host: HostSnapshot, port: int, use: str = "") -> Refusal | None:
    """Why a port of a host is not available, with its use; None = it is free."""
    if host.claimed(PORT, port):
        held_by = holders(host, PORT, port)
        return Refusal(Reason.PORT, f"port {port}{use} is claimed already", held_by=held_by)
    if port in host.ports_in_use:
        return Refusal(Reason.PORT, f"port {port}{use}: something else listens there")
    return None


def ram_refusal(host: HostSnapshot, needed: int, available: int) -> Refusal:
    """The refusal of a host that has too little RAM."""
    return Refusal(Reason.RAM, needed=needed, available=available, held_by=holders(host, RAM))


def _short(host: HostSnapshot, resource: Resource, index: int, amount: int, available: int) -> str:
    if resource == Resource.CORES:
        reason = f"cores: {amount} needed, {available} available"
    else:
        name = "RAM" if resource == Resource.RAM else f"accelerator {index}"
        reason = f"{name}: {human_bytes(amount)} needed, {human_bytes(available)} available"
    held = _holder_note(host, resource, index)
    return f"{reason}; {held}" if held else reason


def _holder_note(host: HostSnapshot, resource: Resource, index: int) -> str:
    names = holders(host, resource, index)
    return f"held by {', '.join(names)}" if names else ""


def _port_misfit(host: HostSnapshot, port: int, amount: int) -> str:
    if host.claimed(Resource.PORT, port):
        return f"port {port}: {_holder_note(host, Resource.PORT, port) or 'claimed already'}"
    if port in host.ports_in_use:
        return f"port {port}: something else listens there"
    return f"port {port}: wanted {amount} times" if amount > 1 else ""


def _pool_misfit(host: HostSnapshot, room: Room, needs: dict[tuple[Resource, int], int]) -> str:
    """With unified memory, RAM and accelerators are claimed from the same bytes."""
    memory = sum(n for (kind, _), n in needs.items() if kind in (RAM, ACCELERATOR))
    if not host.unified_memory or memory <= room.ram:
        return ""
    return f"unified memory: {human_bytes(memory)} needed, {human_bytes(room.ram)} available"
