"""What the memory would be for on the host that misses it by the least."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Reason
from moorage.common.units import human_bytes
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.demand import Ask, Split
from moorage.placement.request import Request
from moorage.placement.verdict import Verdict
from moorage.placement.view import look_at


def shortage(request: Request, fleet: FleetSnapshot, verdicts: Sequence[Verdict]) -> str:
    """One line: the parts of the memory on the nearest miss; empty when memory is not short."""
    # Rules that measure no single shape, such as the baseline's, give reasons in words.
    memory = (one for one in verdicts if one.refusal == Reason.ACCELERATOR_MEMORY)
    short = [one for one in memory if one.count]
    if not short:
        return ""
    nearest = min(short, key=lambda one: one.needed - one.available)
    stated = request.stated
    split = Split(stated.tensor, stated.pipeline) if stated else Split(tensor=nearest.count)
    for kind in look_at(fleet.host(nearest.host)).groups:
        ask = request.demand.least(kind, split)
        if isinstance(ask, Ask) and ask.bytes == nearest.needed:
            parts = [f"{term.name} {human_bytes(term.bytes)}" for term in ask.need.terms]
            return (
                f"{human_bytes(ask.bytes)} on each of {nearest.count} x {kind} for {ask.tokens}"
                f" tokens: {', '.join(parts)}"
            )
    return ""
