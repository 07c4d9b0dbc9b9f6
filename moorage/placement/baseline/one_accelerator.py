"""The smallest seat: one accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.request import Found, gib
from moorage.placement.baseline.terms import Terms
from moorage.placement.baseline.views import View
from moorage.placement.candidate import Candidate


def one_accelerator(terms: Terms, groups: Mapping[str, Sequence[View]]) -> Found:
    """Every single accelerator that is large enough, unless more than one is wanted."""
    if terms.wanted > 1:
        return Found()
    views = [view for group in groups.values() for view in group]
    candidates = tuple(found for view in views for found in _of_host(terms, view))
    return Found(candidates, () if candidates else _why(terms, views))


def _of_host(terms: Terms, view: View) -> Iterator[Candidate]:
    if terms.short_of_ram(view.room.ram):
        return
    for item in view.accelerators:
        if _fits(terms, view, item):
            whole = terms.utilization > 0
            taken = int(item.memory_total * terms.utilization) if whole else terms.claim
            share = terms.share(view.room.host, (item.index,), {item.index: taken})
            yield Candidate(item.type, share)


def _fits(terms: Terms, view: View, item: Accelerator) -> bool:
    """With a share, the claim is held against all memory and only the share has to be free."""
    if terms.utilization > 0:
        room = item.memory_total * terms.utilization
        return terms.claim <= room and view.ratio(item) >= terms.utilization
    return terms.claim <= view.free.get(item.index, 0)


def _why(terms: Terms, views: Sequence[View]) -> tuple[str, ...]:
    seen = (
        (view.free.get(item.index, 0), view.ratio(item))
        for view in views
        if not terms.short_of_ram(view.room.ram)
        for item in view.accelerators
    )
    free, ratio = max(seen, key=lambda pair: pair[0], default=(0, 0.0))
    part = f" ({ratio:.2%})" if terms.utilization else ""
    return (f"The largest accelerator has {gib(free)} allocatable{part}.",)
