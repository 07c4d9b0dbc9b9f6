"""The one arithmetic of what fits: the proposal and the ledger's commit both use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.placement.claims import Claim, Resource
from moorage.placement.snapshot import HostSnapshot
from moorage.units import human_bytes


def misfits(host: HostSnapshot, wanted: Iterable[Claim]) -> tuple[str, ...]:
    """Why claims do not fit on a host, each with its numbers; empty = they fit.

    Several claims on one resource are added up.
    """
    needs: dict[tuple[Resource, int], int] = {}
    for claim in wanted:
        key = (claim.resource, claim.index)
        needs[key] = needs.get(key, 0) + claim.amount
    return tuple(
        reason
        for (resource, index), amount in needs.items()
        if (reason := _misfit(host, resource, index, amount))
    )


def allocatable_ram(host: HostSnapshot) -> int:
    """Bytes of RAM that can still be claimed, and never more than is really free now."""
    unclaimed = host.ram_total - host.ram_reserve - host.claimed(Resource.RAM)
    return max(0, min(unclaimed, host.ram_free))


def allocatable_memory(host: HostSnapshot, index: int) -> int:
    """Bytes of an accelerator that can still be claimed, and never more than is really free."""
    item = next((item for item in host.accelerators if item.index == index), None)
    if item is None:
        return 0
    claimed = host.claimed(Resource.ACCELERATOR, index)
    return max(0, min(item.memory_total - host.accelerator_reserve - claimed, item.memory_free))


def free_ports(host: HostSnapshot, count: int, taken: Sequence[int] = ()) -> list[int]:
    """The lowest free ports of a host's range; fewer than asked when it is exhausted."""
    low, high = host.port_range
    used = set(host.ports_in_use) | set(taken)
    used |= {claim.index for claim in host.claims if claim.resource == Resource.PORT}
    free = (port for port in range(low, high + 1) if port not in used)
    return [port for port, _ in zip(free, range(count), strict=False)]


def _misfit(host: HostSnapshot, resource: Resource, index: int, amount: int) -> str:
    if resource == Resource.PORT:
        return _port_misfit(host, index, amount)
    if resource == Resource.RAM:
        available, name = allocatable_ram(host), "RAM"
    else:
        available, name = allocatable_memory(host, index), f"accelerator {index}"
    if amount <= available:
        return ""
    held = _holders(host, resource, index)
    reason = f"{name}: {human_bytes(amount)} needed, {human_bytes(available)} available"
    return f"{reason}; {held}" if held else reason


def _holders(host: HostSnapshot, resource: Resource, index: int) -> str:
    claims = (c for c in host.claims if (c.resource, c.index) == (resource, index))
    names = sorted({claim.release for claim in claims if claim.release})
    return f"held by {', '.join(names)}" if names else ""


def _port_misfit(host: HostSnapshot, port: int, amount: int) -> str:
    if host.claimed(Resource.PORT, port):
        return f"port {port}: {_holders(host, Resource.PORT, port) or 'claimed already'}"
    if port in host.ports_in_use:
        return f"port {port}: something else listens there"
    return f"port {port}: wanted {amount} times" if amount > 1 else ""
