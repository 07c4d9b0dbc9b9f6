"""Accelerators that the user named.

Neither divisibility nor free RAM is looked at, and without a share of its own nothing free is
either (the peer's defects 28 to 30): what does not fit is taken all the same and called overcommit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.allocatable import Room
from moorage.placement.baseline.overcommit import judge
from moorage.placement.baseline.request import Found, ManualAccelerator
from moorage.placement.baseline.terms import Terms
from moorage.placement.baseline.views import View
from moorage.placement.candidate import Candidate, Share

Selection = Mapping[str, Mapping[str, Sequence[int]]]
"""Indexes by accelerator type and host, ascending."""

MIXED_TYPES = (
    "Accelerators of several types cannot form one replica: select one type, or let a replica "
    "take fewer of them."
)


def manual(terms: Terms, rooms: Sequence[Room], distributed: Collection[str]) -> Found:
    """Candidates among the named accelerators.

    Args:
        terms: The request.
        rooms: The fleet.
        distributed: Releases that span hosts; where one runs, no follower of another is put.
    """
    named = terms.request.manual
    selection = _selection(named)
    if terms.wanted == len(named) and len(selection) > 1:
        return Found(lines=(MIXED_TYPES,))
    groups = {name: _views(rooms, name, hosts) for name, hosts in selection.items()}
    candidates = [*_one_host(terms, groups)]
    if not candidates and terms.wanted > 1:
        candidates = [*_many_hosts(terms, groups, selection, distributed)]
    return judge(terms, candidates, rooms, selection)


def _selection(named: Sequence[ManualAccelerator]) -> Selection:
    selection: dict[str, dict[str, list[int]]] = {}
    for item in sorted(named, key=lambda item: item.index):
        selection.setdefault(item.type, {}).setdefault(item.host, []).append(item.index)
    order = dict.fromkeys(item.type for item in named)
    return {name: selection[name] for name in order}


def _views(rooms: Sequence[Room], name: str, hosts: Mapping[str, Sequence[int]]) -> list[View]:
    """Hosts with the most named accelerators first, the accelerators with the most left first."""
    views = []
    for room in rooms:
        if room.accelerators and room.host in hosts:
            free = room.free_of_type(name)
            of_type = {item.index: item for item in room.accelerators if item.type == name}
            order = _by_rate(room.accelerators, free)
            chosen = (of_type[i] for i in order if i in hosts[room.host] and i in of_type)
            views.append(View(room, tuple(chosen), free))
    return sorted(views, key=lambda view: -len(view.accelerators))


def _by_rate(items: Sequence[Accelerator], amounts: Mapping[int, int]) -> list[int]:
    """Indexes by amount per memory, largest first.

    Of two types that share an index, the memory of the later one counts.
    """
    rates = {item.index: amounts.get(item.index, 0) / item.memory_total for item in items}
    return sorted(rates, key=lambda index: -rates[index])


def _one_host(terms: Terms, groups: Mapping[str, Sequence[View]]) -> Iterator[Candidate]:
    """Each accelerator; or, of each host with enough, those whose share is free before others."""
    for name, views in groups.items():
        for view in views:
            if terms.wanted == 1:
                for item in view.accelerators:
                    yield Candidate(name, _share(terms, view, [item.index]))
            elif 1 < terms.wanted <= len(view.accelerators):
                items = sorted(view.accelerators, key=lambda item: not _is_free(terms, view, item))
                indexes = [item.index for item in items[: terms.wanted]]
                yield Candidate(name, _share(terms, view, indexes))


def _is_free(terms: Terms, view: View, item: Accelerator) -> bool:
    return terms.utilization <= 0 or view.ratio(item) >= terms.utilization


def _many_hosts(
    terms: Terms,
    groups: Mapping[str, Sequence[View]],
    selection: Selection,
    distributed: Collection[str],
) -> Iterator[Candidate]:
    """The host with the most leads and gives all; the others give what is still missing."""
    for name, views in groups.items():
        if len(views) < 2:
            continue
        leader = _share(terms, views[0], selection[name][views[0].room.host])
        missing = terms.wanted - len(leader.accelerators)
        followers: list[Share] = []
        for view in views[1:]:
            if not view.room.releases.isdisjoint(distributed):
                continue
            named = selection[name][view.room.host]
            order = _by_rate(view.accelerators, _memory(terms, view, named))
            followers.append(_share(terms, view, order[: min(len(named), max(missing, 0))]))
            missing -= len(followers[-1].accelerators)
            if missing <= 0:
                break
        if followers:
            yield Candidate(name, leader, tuple(followers))


def _share(terms: Terms, view: View, indexes: Sequence[int]) -> Share:
    return terms.share(view.room.host, indexes, _memory(terms, view, indexes))


def _memory(terms: Terms, view: View, indexes: Sequence[int]) -> dict[int, int]:
    """Bytes to take of each; without a share of its own each host takes the whole claim."""
    if terms.utilization > 0:
        return {
            item.index: int(item.memory_total * terms.utilization)
            for item in view.accelerators
            if item.index in indexes
        }
    each = int(terms.claim / len(indexes)) if indexes else 0
    return {item.index: each for item in view.accelerators if item.index in indexes}
