"""Why a host is not among those that run one replica together."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.common.refusal import Reason
from moorage.inventory.claims import Resource
from moorage.placement.demand import Split
from moorage.placement.fit import holders
from moorage.placement.on_cpu import cpu_refusal
from moorage.placement.request import Request
from moorage.placement.verdict import Verdict
from moorage.placement.view import HostView
from moorage.placement.within_ram import short_of_ram, within_ram


def left_out(request: Request, view: HostView, others_do: bool) -> Verdict:
    """The verdict of a host that passed the filters, where a number of hosts is asked for.

    Args:
        request: What is to be placed.
        view: The host.
        others_do: Whether the replica was placed, on other hosts.
    """
    short = _short(request, view)
    if short is not None:
        return short
    if others_do:
        return Verdict(view.host.name, note="could take part; other hosts were preferred")
    note = f"could take part, but {request.hosts} hosts are asked for and too few others can"
    return Verdict(view.host.name, Reason.TOO_FEW_HOSTS, note)


def _short(request: Request, view: HostView) -> Verdict | None:
    """What the host itself lacks for its part; None = nothing."""
    if not view.groups:
        return _short_on_cpu(request, view)
    found = list(_parts(request, view))
    if any(one is None for one in found):
        return None
    missed = [one for one in found if one is not None]
    measured = [one for one in missed if one.needed]
    if measured:
        return min(measured, key=lambda one: one.needed - one.available)
    if missed:
        return missed[0]
    note = f"{request.count} accelerators over {request.hosts} hosts are more than it has"
    return Verdict(view.host.name, Reason.NO_ACCELERATOR, note)


def _short_on_cpu(request: Request, view: HostView) -> Verdict | None:
    if reason := request.demand.uneven(request.hosts):
        return Verdict(view.host.name, Reason.PARALLELISM, reason)
    needed = request.on_processors.least(request.hosts).bytes
    refused = cpu_refusal(request, view, needed)
    return Verdict.of(view.host.name, refused) if refused else None


def _parts(request: Request, view: HostView) -> Iterator[Verdict | None]:
    """By number of accelerators that it could give: what is short; None = nothing."""
    for kind, room in view.groups.items():
        for count in range(1, len(room) + 1):
            if request.count not in (None, count * request.hosts):
                continue
            split = Split(tensor=count, pipeline=request.hosts)
            if request.stated:
                split = Split(request.stated.tensor, request.stated.pipeline)
            ask = request.demand.least(kind, split)
            if isinstance(ask, str):
                yield Verdict(view.host.name, Reason.PARALLELISM, ask)
            elif ask.bytes <= (left := within_ram(request, view, kind, room[:count])[-1]):
                yield None
            elif ask.bytes <= room[count - 1] and not view.host.unified_memory:
                yield short_of_ram(request, view, kind, ask.bytes * count)
            else:
                held_by = holders(view.host, Resource.ACCELERATOR)
                yield Verdict(
                    view.host.name,
                    Reason.ACCELERATOR_MEMORY,
                    needed=ask.bytes,
                    available=left,
                    count=count,
                    there=len(room),
                    held_by=held_by,
                )
