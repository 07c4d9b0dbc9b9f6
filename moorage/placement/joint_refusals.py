"""Why a host is not among those that run one replica together."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.placement.candidates import (
    cpu_refusal,
    ram_refusal,
    within_ram,
)
from moorage.placement.demand import Split
from moorage.placement.explanation import Verdict
from moorage.placement.fit import holders
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView


def joint_verdict(request: Request, view: HostView, placed: bool) -> Verdict:
    """The verdict where the user wants several hosts for one replica.

    Args:
        request: What is to be placed.
        view: A host that passed the filters.
        placed: Whether the replica was placed, on other hosts.
    """
    name = view.host.name
    if refusal := _part_refusal(request, view):
        return Verdict.of(name, refusal)
    if placed:
        return Verdict(name, note="could take part; other hosts were preferred")
    note = f"could take part, but {request.hosts} hosts are requested and too few others can"
    return Verdict(name, Reason.TOO_FEW_HOSTS, note)


def _part_refusal(request: Request, view: HostView) -> Refusal | None:
    """What the host itself lacks for its part; None = nothing."""
    if not view.groups:
        return _part_refusal_on_cpu(request, view)
    refusals = []
    for refusal in _part_refusals(request, view):
        if refusal is None:
            return None
        refusals.append(refusal)
    if measured := [one for one in refusals if one.needed]:
        return min(measured, key=lambda one: one.shortfall)
    note = f"{request.count} accelerators over {request.hosts} hosts are more than it has"
    return refusals[0] if refusals else Refusal(Reason.NO_ACCELERATOR, note)


def _part_refusal_on_cpu(request: Request, view: HostView) -> Refusal | None:
    if uneven := request.demand.uneven(request.hosts):
        return Refusal(Reason.PARALLELISM, uneven)
    return cpu_refusal(request, view, request.cpu_demand.least(request.hosts).bytes)


def _part_refusals(request: Request, view: HostView) -> Iterator[Refusal | None]:
    """By number of accelerators that the host could give: what it lacks; None = nothing."""
    for kind, room in view.groups.items():
        for count in range(1, len(room) + 1):
            if request.count in (None, count * request.hosts):
                yield _lack(request, view, kind, room[:count], len(room))


def _lack(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int], there: int
) -> Refusal | None:
    """What is lacking for a part on these accelerators; None = nothing."""
    stated, count = request.stated, len(room)
    split = Split(tensor=count, pipeline=request.hosts)
    if stated:
        split = Split(stated.tensor, stated.pipeline)
    allocation = request.demand.least(kind, split)
    if allocation is None:
        refusal = request.demand.refusal(kind, split)
        return Refusal(Reason.PARALLELISM, refusal.note if refusal else "")
    needed, available = allocation.bytes, within_ram(request, view, kind, room)[-1]
    if needed <= available:
        return None
    if needed <= room[-1] and not view.host.unified_memory:
        return ram_refusal(request, view, kind, needed * count)
    held_by = holders(view.host, Resource.ACCELERATOR)
    return Refusal(Reason.ACCELERATOR_MEMORY, "", needed, available, count, there, held_by)
