"""Several accelerators of one host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.request import Found, gib
from moorage.placement.baseline.terms import Terms
from moorage.placement.baseline.views import View
from moorage.placement.candidate import Candidate


def one_host(terms: Terms, groups: Mapping[str, Sequence[View]]) -> Found:
    """One candidate a host, of those only the ones with the fewest accelerators.

    A wanted number that does not divide the model is passed over, and the next larger one that
    does is taken (the peer's defect 6).
    """
    if terms.wanted == 1:
        return Found()
    found = [
        candidate
        for name, views in groups.items()
        for view in views
        if (candidate := _of_host(terms, name, view))
    ]
    if not found:
        return Found(lines=tuple(_why(terms, groups)))
    fewest = min(len(item.leader.accelerators) for item in found)
    return Found(tuple(item for item in found if len(item.leader.accelerators) == fewest))


def _of_host(terms: Terms, name: str, view: View) -> Candidate | None:
    if len(view.accelerators) < 2 or terms.short_of_ram(view.room.ram):
        return None
    eligible = sorted(_eligible(terms, view), key=lambda item: -view.free.get(item.index, 0))
    taken: dict[int, int] = {}
    for count, item in enumerate(eligible, 1):
        taken[item.index] = _taken(terms, view, item)
        if not terms.divisibility.allows(count) or count < terms.wanted:
            continue
        if sum(taken.values()) >= terms.claim:
            return Candidate(name, terms.share(view.room.host, [*taken], taken))
        if terms.wanted:
            return None
    return None


def _taken(terms: Terms, view: View, item: Accelerator) -> int:
    if terms.utilization > 0:
        return int(item.memory_total * terms.utilization)
    return view.free.get(item.index, 0)


def _eligible(terms: Terms, view: View) -> Iterator[Accelerator]:
    """More than the share has to be free; exactly the share is not enough (the peer's defect 7)."""
    return (item for item in view.accelerators if view.ratio(item) > terms.utilization)


def _why(terms: Terms, groups: Mapping[str, Sequence[View]]) -> Iterator[str]:
    views = (view for group in groups.values() for view in group if len(view.accelerators) > 1)
    sized = [(_free(view), view) for view in views if not terms.short_of_ram(view.room.ram)]
    if not sized:
        yield "No host offers several accelerators."
        return
    free, largest = max(sized, key=lambda pair: pair[0])
    count, total = len([*_eligible(terms, largest)]), len(largest.accelerators)
    if obstacle := terms.divisibility.obstacle(count):
        yield f"{obstacle.meaning}."
    text = f"The largest host has {gib(free)} allocatable"
    if terms.utilization:
        effective = free * terms.utilization * count / total
        text += f", {count}/{total} of its accelerators meet the utilization: {gib(effective)}"
    yield f"{text}."


def _free(view: View) -> int:
    return sum(view.free.get(item.index, 0) for item in view.accelerators)
