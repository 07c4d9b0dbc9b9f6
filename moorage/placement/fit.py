"""The one arithmetic of what fits: the proposal and the ledger's commit both use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.common.units import human_bytes
from moorage.common.values import fields
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.room import Room, room_of


def misfits(
    host: HostSnapshot, wanted: Iterable[Claim], *, overcommit: bool = False
) -> tuple[str, ...]:
    """Why claims do not fit on a host, each with its numbers; empty = they fit.

    Several claims on one resource are added up.

    Args:
        host: The host with the claims of all others.
        wanted: What is to be claimed.
        overcommit: Whether accelerators may be claimed beyond their memory.
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
        if overcommit and resource == Resource.ACCELERATOR and index in memory:
            continue
        available = {Resource.RAM: room.ram, Resource.CORES: room.cores}.get(
            resource, memory.get(index, 0)
        )
        if amount > available:
            reasons.append(_short(host, resource, index, amount, available))
    reasons.append(_pool_misfit(host, room, needs))
    return tuple(reason for reason in reasons if reason)


def allocatable_ram(host: HostSnapshot) -> int:
    """Bytes of RAM that can still be claimed."""
    return room_of(host).ram


def allocatable_memory(host: HostSnapshot, index: int) -> int:
    """Bytes of an accelerator that can still be claimed."""
    room = room_of(host)
    for item, left in zip(host.accelerators, room.memory, strict=True):
        if item.index == index:
            return left
    return 0


def free_ports(host: HostSnapshot, count: int, taken: Sequence[int] = ()) -> list[int]:
    """The lowest free ports of a host's range; fewer than asked when it is exhausted."""
    low, high = host.port_range
    used = set(host.ports_in_use) | set(taken)
    used |= {claim.index for claim in host.claims if claim.resource == Resource.PORT}
    free = (port for port in range(low, high + 1) if port not in used)
    return [port for port, _ in zip(free, range(count), strict=False)]


def holders(host: HostSnapshot, resource: Resource, index: int | None = None) -> tuple[str, ...]:
    """Releases that hold some of a resource; of all indexes when none is given."""
    names = {
        claim["release"]
        for claim in map(fields, host.claims)
        if claim["resource"] is resource and (index is None or claim["index"] == index)
    }
    names.discard("")
    return tuple(sorted(names))


def _short(host: HostSnapshot, resource: Resource, index: int, amount: int, available: int) -> str:
    if resource == Resource.CORES:
        reason = f"cores: {amount} needed, {available} available"
    else:
        name = "RAM" if resource == Resource.RAM else f"accelerator {index}"
        reason = f"{name}: {human_bytes(amount)} needed, {human_bytes(available)} available"
    held = _held(host, resource, index)
    return f"{reason}; {held}" if held else reason


def _held(host: HostSnapshot, resource: Resource, index: int) -> str:
    names = holders(host, resource, index)
    return f"held by {', '.join(names)}" if names else ""


def _port_misfit(host: HostSnapshot, port: int, amount: int) -> str:
    if host.claimed(Resource.PORT, port):
        return f"port {port}: {_held(host, Resource.PORT, port) or 'claimed already'}"
    if port in host.ports_in_use:
        return f"port {port}: something else listens there"
    return f"port {port}: wanted {amount} times" if amount > 1 else ""


def _pool_misfit(host: HostSnapshot, room: Room, needs: dict[tuple[Resource, int], int]) -> str:
    """With unified memory, RAM and accelerators are claimed from the same bytes."""
    memory = sum(
        n for (kind, _), n in needs.items() if kind in (Resource.RAM, Resource.ACCELERATOR)
    )
    if not host.unified_memory or memory <= room.ram:
        return ""
    return f"unified memory: {human_bytes(memory)} needed, {human_bytes(room.ram)} available"
