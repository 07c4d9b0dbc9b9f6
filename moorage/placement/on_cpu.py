"""Seats on hosts whose processors run the engine: RAM and cores are what counts."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.inventory.claims import Resource
from moorage.placement.demand import Split
from moorage.placement.fit import holders
from moorage.placement.offer import Offer
from moorage.placement.request import Refused, Request
from moorage.placement.verdict import Refusal
from moorage.placement.view import HostView


def on_cpu(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """The hosts without accelerators to use whose RAM and cores do."""
    least, full = request.on_processors.least().bytes, request.on_processors.full().bytes
    offers = []
    for view in views:
        if view.groups or cpu_refusal(request, view, least):
            continue
        is_full = view.room.ram >= full
        needed = full if is_full else view.room.ram
        offers.append(Offer((view,), ([view.room.ram],), None, Split(), needed, is_full))
    return offers


def cpu_refusal(request: Request, view: HostView, needed: int) -> Refused | None:
    """Why a host cannot run the replica on its processors; None = it can."""
    host, room = view.host, view.room
    if needed > room.ram:
        held_by = holders(host, Resource.RAM)
        return Refused(Refusal.RAM, needed=needed, available=room.ram, held_by=held_by)
    wanted = request.spec.placement.cores
    cores = 1 if wanted == "auto" else wanted
    if cores > room.cores:
        held_by = holders(host, Resource.CORES)
        return Refused(Refusal.CORES, needed=cores, available=room.cores, held_by=held_by)
    return None
