"""Seats on hosts whose processors run the engine: RAM and cores are what counts."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.placement.demand import Split
from moorage.placement.fit import holders
from moorage.placement.links import unjoinable
from moorage.placement.offer import Offer
from moorage.placement.request import Request
from moorage.placement.view import HostView
from moorage.spec import Strategy


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


def cpu_refusal(request: Request, view: HostView, needed: int) -> Refusal | None:
    """Why a host cannot run the replica on its processors; None = it can."""
    host, room = view.host, view.room
    if needed > room.ram:
        held_by = holders(host, Resource.RAM)
        return Refusal(Reason.RAM, needed=needed, available=room.ram, held_by=held_by)
    wanted = request.spec.placement.cores
    cores = 1 if wanted == "auto" else wanted
    if cores > room.cores:
        held_by = holders(host, Resource.CORES)
        return Refusal(Reason.CORES, needed=cores, available=room.cores, held_by=held_by)
    return None


def on_many_cpus(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """The fewest hosts whose RAM and cores do; tensor parallelism alone, as vLLM on CPU can.

    With pipeline stages on CPU vLLM 0.32 dies at its first request.
    """
    there = [view for view in views if not view.groups and not unjoinable(request, view.host)]
    for hosts in request.host_counts(len(there)):
        split = Split(tensor=hosts)
        if request.demand.uneven(hosts) or not _goes_with(request, split):
            continue
        asks = request.on_processors
        least, full = asks.least(hosts).bytes, asks.full(hosts).bytes
        able = [view for view in there if not cpu_refusal(request, view, least)]
        if len(able) < hosts:
            continue
        roomy = [view for view in able if view.room.ram >= full]
        is_full = len(roomy) >= hosts
        packs = is_full and request.spec.placement.strategy == Strategy.BINPACK
        chosen = sorted(roomy if is_full else able, key=lambda v: v.room.ram, reverse=not packs)
        taken = tuple(chosen[:hosts])
        rooms = tuple([view.room.ram] for view in taken)
        needed = full if is_full else min(view.room.ram for view in taken)
        return [Offer(taken, rooms, None, split, needed, is_full)]
    return []


def _goes_with(request: Request, split: Split) -> bool:
    """Whether the sizes that the user states are those of the hosts."""
    stated = request.stated
    return stated is None or (stated.tensor, stated.world) == (split.tensor, split.tensor)
