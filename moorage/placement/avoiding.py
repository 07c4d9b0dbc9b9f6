"""Hosts and accelerators on which nothing new is placed."""

from __future__ import annotations

from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot


def without_avoided(host: HostSnapshot, fleet: Fleet) -> HostSnapshot:
    """A host without what the fleet avoids there.

    Args:
        host: As it was surveyed.
        fleet: What it says.
    """
    own = [one for one in fleet.avoid if one.host == host.name]
    whole = [one for one in own if not one.accelerators]
    if whole:
        why = whole[0].reason or "the fleet says so"
        # What cannot be looked at is told as such: that is what a person must mend first.
        return host.model_copy(update={"unreachable": host.unreachable or f"avoided: {why}"})
    gone = {index for one in own for index in one.accelerators}
    if not gone:
        return host
    kept = tuple(item for item in host.accelerators if item.index not in gone)
    troubles = [
        f"accelerators {', '.join(map(str, one.accelerators))} are avoided: {one.reason}".rstrip(
            ": "
        )
        for one in own
    ]
    return host.model_copy(update={"accelerators": kept, "troubles": (*host.troubles, *troubles)})
