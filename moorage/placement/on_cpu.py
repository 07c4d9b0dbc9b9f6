"""Seats on hosts whose processors run the engine: RAM and cores are what counts."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.claims import Resource
from moorage.placement.demand import Split
from moorage.placement.fit import holders
from moorage.placement.offer import Offer
from moorage.placement.request import Refused, Request
from moorage.placement.verdict import Refusal
from moorage.placement.view import HostView


def on_cpu(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """The hosts without accelerators to use whose RAM and cores do."""
    needed = ram_needed(request)
    offers = []
    for view in views:
        if view.groups or cpu_refusal(request, view, needed):
            continue
        offers.append(Offer((view,), ([view.room.ram],), None, Split(), needed))
    return offers


def ram_needed(request: Request) -> int:
    """Bytes of RAM of one replica on CPU."""
    stated = request.spec.placement.ram
    return request.engine.ram_on_cpu(request.profile) if stated == "auto" else int(stated)


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
