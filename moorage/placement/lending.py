"""The host from which another host copies a model, and the ports for lending."""

from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.models.source import ResolvedModel
from moorage.placement.fit import ALL_PORTS, free_ports

MOST_PORTS = 8


def lender_for(
    host: HostSnapshot, model: ResolvedModel, snapshot: FleetSnapshot
) -> HostSnapshot | None:
    """A host that has the complete model and lends it; None = download it from its source.

    Hosts that want the same model are spread over the lenders, those of the same site first. Models
    without checksums are not copied, because the copy could not be verified.
    """
    named = f"{model.source}@{model.revision}"
    if named in host.models or not all(file.checksum for file in model.files):
        return None
    having = [
        other
        for other in snapshot.hosts
        if other.shares_models and not other.unreachable and named in other.models
    ]
    having = [other for other in having if other.site == host.site] or having
    position = [other.name for other in snapshot.hosts].index(host.name)
    return having[position % len(having)] if having else None


def ports_for_lending(host: HostSnapshot) -> tuple[int, ...]:
    """Free, unclaimed ports, from the end of the range, where claims are fewest."""
    return tuple(free_ports(host, ALL_PORTS)[: -MOST_PORTS - 1 : -1])
