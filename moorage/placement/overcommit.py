"""Seats on accelerators that a person listed although they are too full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from moorage.common.units import human_bytes
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.fit import allocatable_memory
from moorage.placement.many_hosts import many_hosts
from moorage.placement.offer import Offer
from moorage.placement.one_host import one_host
from moorage.placement.placement import Placement
from moorage.placement.request import Request
from moorage.placement.view import HostView, narrowed


def overcommitted(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """What would be offered if nothing else were on the accelerators, with the least claim.

    An accelerator that is too small even when it is empty is not offered, and none that lives
    in the host's RAM: beyond that, the host itself fails.
    """
    views = [view for view in views if not view.host.unified_memory]
    empty = [_emptied(view) for view in views]
    offers = [] if request.must_span else one_host(request, empty)
    if not offers and request.spans_hosts:
        offers = many_hosts(request, empty)
    there = {view.host.name: view for view in views}
    return [_as_it_is(request, offer, there) for offer in offers]


def overcommit_warnings(placement: Placement, fleet: FleetSnapshot) -> tuple[str, ...]:
    """What is claimed of accelerators beyond what is free on them.

    What stops first is not free in the snapshot, though it will be; nothing is said then.
    """
    claimed: Counter[tuple[str, int]] = Counter()
    for seat in placement.seats:
        pairs = zip(seat.accelerators, seat.accelerator_bytes, strict=True)
        claimed.update({(seat.host, index): amount for index, amount in pairs})
    free = {(host, index): allocatable_memory(fleet.host(host), index) for host, index in claimed}
    return tuple(
        f"overcommitted: {human_bytes(amount)} of accelerator {index} of {host} are claimed,"
        f" {human_bytes(free[host, index])} are free; the engine may fail to start"
        for (host, index), amount in claimed.items()
        if amount > free[host, index] and not placement.stop_first
    )


def _emptied(view: HostView) -> HostView:
    return narrowed(view, {kind: [kind.total] * len(room) for kind, room in view.groups.items()})


def _as_it_is(request: Request, offer: Offer, there: dict[str, HostView]) -> Offer:
    assert offer.kind is not None
    views = tuple(there[view.host.name] for view in offer.views)
    rooms = zip(views, offer.rooms, strict=True)
    least = request.demand.least(offer.kind, offer.split)
    return Offer(
        views=views,
        rooms=tuple(view.groups[offer.kind][: len(room)] for view, room in rooms),
        kind=offer.kind,
        split=offer.split,
        needed=offer.needed if isinstance(least, str) else least.bytes,
        is_full=False,
    )
