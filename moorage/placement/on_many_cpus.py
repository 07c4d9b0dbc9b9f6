"""Seats on several hosts whose processors run one replica together: each host is one rank."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.demand import Split
from moorage.placement.links import unjoinable
from moorage.placement.offer import Offer
from moorage.placement.on_cpu import cpu_refusal
from moorage.placement.request import Request
from moorage.placement.view import HostView
from moorage.spec import Strategy


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
