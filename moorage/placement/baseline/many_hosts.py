"""Whole hosts with equally many accelerators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage.common.refusal import Refusal
from moorage.placement.baseline.request import Found, gib
from moorage.placement.baseline.terms import Terms
from moorage.placement.baseline.views import View
from moorage.placement.candidate import Candidate, Share
from moorage.placement.parallelism import multi_host_topology

NO_COMBINATION = (
    "No combination of hosts can run the model. If the resources do suffice, select the "
    "accelerators yourself."
)


@dataclass
class _Walk:
    """Hosts of one size, taken in fleet order."""

    hosts: int
    taken: list[View] = field(default_factory=list)
    accelerators: int = 0
    memory: int = 0


def many_hosts(terms: Terms, groups: Mapping[str, Sequence[View]]) -> Found:
    """The first combination of each accelerator type, if replicas may span hosts."""
    if not terms.request.distributed_allowed:
        return Found()
    candidates, lines = [], []
    for name, views in groups.items():
        if len(views) < 2:
            continue
        candidate, why = _of_type(terms, name, views)
        if candidate:
            candidates.append(candidate)
        else:
            lines = why
    return Found(tuple(candidates), () if candidates else tuple(lines))


def _of_type(terms: Terms, name: str, views: Sequence[View]) -> tuple[Candidate | None, list[str]]:
    sizes = sorted({len(view.accelerators) for view in views}, reverse=True)
    reasons: dict[str, None] = {}
    best = _Walk(0)
    for size in sizes:
        group = [view for view in views if len(view.accelerators) == size]
        if len(group) < 2 or not terms.divisibility.allows(size):
            continue
        walk = _Walk(len(group))
        if _walk(terms, group, size, walk, reasons):
            return _candidate(terms, name, walk.taken), []
        best = walk if walk.memory > best.memory else best
    return None, [*reasons, *_combination(terms, best), NO_COMBINATION]


def _walk(
    terms: Terms, group: Sequence[View], size: int, walk: _Walk, reasons: dict[str, None]
) -> bool:
    """Take hosts until they do; False when they run out."""
    for view in group:
        if not _usable(terms, view):
            continue
        walk.taken.append(view)
        walk.accelerators += size
        walk.memory += sum(
            int(item.memory_total * (terms.utilization or 1)) for item in view.accelerators
        )
        if terms.wanted and walk.accelerators < terms.wanted:
            continue
        if terms.wanted and walk.accelerators > terms.wanted:
            return False
        if walk.memory < terms.claim:
            continue
        refusal = _topology_refusal(terms, len(walk.taken), size)
        if refusal is None:
            return True
        reasons[refusal.note] = None
    return False


def _usable(terms: Terms, view: View) -> bool:
    return not terms.short_of_ram(view.room.ram) and all(
        view.ratio(item) >= terms.utilization for item in view.accelerators
    )


def _topology_refusal(terms: Terms, hosts: int, size: int) -> Refusal | None:
    if terms.native and hosts > 1:
        try:
            multi_host_topology([size] * hosts, terms.sizes)
        except Refusal as refusal:
            return refusal
    return None


def _candidate(terms: Terms, name: str, views: Sequence[View]) -> Candidate:
    leader, *followers = (_share(terms, view) for view in views)
    return Candidate(name, leader, tuple(followers))


def _share(terms: Terms, view: View) -> Share:
    """Without a share of its own an accelerator is claimed for nothing (the peer's defect 27)."""
    taken = {item.index: int(item.memory_total * terms.utilization) for item in view.accelerators}
    return terms.share(view.room.host, [*taken], taken)


def _combination(terms: Terms, best: _Walk) -> list[str]:
    if not terms.utilization:
        return [f"The largest combination has {gib(best.memory)}."]
    if not best.taken:
        return []
    names = [view.room.host for view in best.taken]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    text = f"The best combination is {', '.join(names[:3])}{more} with {gib(best.memory)}"
    unfit = best.hosts - len(names)
    return [
        f"{text}; {unfit} other hosts of that size lack free accelerators." if unfit else f"{text}."
    ]
