"""Candidates over several hosts: tensor parallel within each, pipeline parallel across them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import zip_longest

from moorage.common.refusal import Refusal
from moorage.placement.candidates import Candidate, tightest, within_ram
from moorage.placement.demand import Allocation, Split
from moorage.placement.links import join_refusal
from moorage.placement.parallelism import Parallelism, ParallelSizes, multi_host_topology
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView
from moorage.spec import Distributed, Strategy


@dataclass(slots=True)
class Part:
    """The room that one host can give on its accelerators of one kind, largest first."""

    view: HostView
    room: list[int]


def many_hosts(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """For each site and kind of accelerator, one candidate: the fewest hosts, then accelerators.

    The network between sites is too slow for one replica. A host may give only some of its
    accelerators. If hosts differ too much for equal shares and Ray joins them, every accelerator
    becomes its own pipeline stage; without Ray, vLLM shares a rank only between hosts that give the
    same number, but hosts may hold different numbers of ranks.
    """
    alike: dict[tuple[str, AcceleratorKind], list[Part]] = defaultdict(list)
    for view in views:
        if join_refusal(request, view.host):
            continue
        for kind, room in view.groups.items():
            alike[view.host.site, kind].append(Part(view, room))
    candidates = (_fewest_hosts(request, kind, parts) for (_, kind), parts in alike.items())
    return [candidate for candidate in candidates if candidate]


def _fewest_hosts(request: Request, kind: AcceleratorKind, parts: list[Part]) -> Candidate | None:
    depths = Depths([part.room for part in parts])
    # The number of stages on each host is not known yet, so require RAM for all accelerators.
    safe = [Part(p.view, within_ram(request, p.view, kind, p.room)) for p in parts]
    stages: dict[int, int] | None = None
    for hosts in request.host_counts(len(parts)):
        if candidate := _even(request, kind, parts, depths, hosts):
            return candidate
        if request.joined_by != Distributed.RAY:
            if candidate := _unequal_copies(request, kind, safe, hosts):
                return candidate
            continue
        if stages is None:
            stages = stages_over_hosts(request, kind, Depths([part.room for part in safe]))
        if hosts in stages:
            split = Split(pipeline=stages[hosts])
            return _unequal(request, kind, safe, hosts, split, split.pipeline)
    return None


def _unequal_copies(
    request: Request, kind: AcceleratorKind, parts: list[Part], hosts: int
) -> Candidate | None:
    """A candidate of natively joined hosts with different numbers of data-parallel copies."""
    stated, split = request.stated, request.stated_split
    if stated is None or split is None or stated.data < hosts or stated.data_local:
        return None
    return _unequal(request, kind, parts, hosts, split, stated.data)


def _even(
    request: Request, kind: AcceleratorKind, parts: list[Part], depths: Depths, hosts: int
) -> Candidate | None:
    """A candidate of `hosts` hosts with the same number of accelerators each."""
    for count, split in _even_splits(request, depths.most, hosts):
        least = request.demand.least(kind, split)
        if isinstance(least, Refusal) or least.bytes > kind.total:
            continue
        full = request.demand.full(kind, split)
        for allocation, is_full in ((full, True), (least, False)):
            if isinstance(allocation, Refusal) or depths.hosts(count, allocation.bytes) < hosts:
                continue
            packs = is_full and request.spec.placement.strategy == Strategy.BINPACK
            able = [*_able(request, kind, parts, count, allocation.bytes, packs)]
            if len(able) >= hosts:
                # The emptiest hosts, or with bin-packing the fullest that still have room.
                if packs:
                    chosen = nsmallest(hosts, able, key=lambda part: part.room[0])
                else:
                    chosen = nlargest(hosts, able, key=lambda part: part.room[-1])
                return _candidate(chosen, kind, split, allocation, is_full)
    return None


def _even_splits(request: Request, most: int, hosts: int) -> Iterator[tuple[int, Split]]:
    if request.stated and (split := request.stated_split):
        count, rest = divmod(request.stated.world, hosts)
        if not rest and is_possible(request.stated, [count] * hosts):
            yield count, split
        return
    for count in range(1, most + 1):
        if request.count not in (None, count * hosts):
            continue
        if derived := request.derived_split(count, hosts):
            yield count, derived


def is_possible(stated: Parallelism | None, accelerators: list[int]) -> bool:
    """Whether vLLM accepts the stated sizes over hosts with these numbers of accelerators."""
    sizes = stated.model_dump(exclude={"data_local"}) if stated else {}
    try:
        multi_host_topology(accelerators, ParallelSizes(**sizes))
    except Refusal:
        return False
    return True


def _able(
    request: Request,
    kind: AcceleratorKind,
    parts: list[Part],
    count: int,
    needed: int,
    packs: bool,
) -> Iterator[Part]:
    """The hosts with room on enough accelerators, and with the accompanying RAM."""
    for part in parts:
        if len(part.room) < count or part.room[count - 1] < needed:
            continue
        room = tightest(part.room, count, needed) if packs else part.room[:count]
        room = within_ram(request, part.view, kind, room)
        if room[-1] >= needed:
            yield Part(part.view, room)


def _unequal(
    request: Request,
    kind: AcceleratorKind,
    parts: list[Part],
    hosts: int,
    split: Split,
    number: int,
) -> Candidate | None:
    """A candidate of the hosts that have room for the most units: `number` stages or copies."""
    each = request.stated.world // number if request.stated else 1
    allocation = request.demand.least(kind, split)
    if isinstance(allocation, Refusal):
        return None
    able = [Part(p.view, [left for left in p.room if left >= allocation.bytes]) for p in parts]
    able.sort(key=lambda part: len(part.room), reverse=True)
    there = [len(part.room) // each for part in able[:hosts]]
    if sum(there) < number or not all(there):
        return None
    numbers = shares(number, there, hosts)
    chosen = [Part(p.view, p.room[: n * each]) for p, n in zip(able, numbers, strict=False)]
    full = request.demand.full(kind, split)
    room = min(part.room[-1] for part in chosen)
    is_full = not isinstance(full, Refusal) and full.bytes <= room
    return _candidate(chosen, kind, split, allocation, is_full)


def _candidate(
    parts: Sequence[Part],
    kind: AcceleratorKind,
    split: Split,
    allocation: Allocation,
    is_full: bool,
) -> Candidate:
    views, rooms = tuple(part.view for part in parts), tuple(part.room for part in parts)
    return Candidate(views, rooms, kind, split, allocation.bytes, is_full)


class Depths:
    """Counts hosts by room: for each n, the room on the n-th emptiest accelerator of every host.

    Each host is read once; each query is then a binary search. `rooms` lists the room on the
    accelerators of each host, largest first.

    Attributes:
        most: Accelerators of the largest host.
    """

    def __init__(self, rooms: Sequence[Sequence[int]]) -> None:
        self.most = max(map(len, rooms), default=0)
        self.accelerators = sum(map(len, rooms))
        self._columns = list(zip_longest(*rooms, fillvalue=-1))  # less than any room
        self._sorted: dict[int, list[int]] = {}

    def hosts(self, count: int, needed: int) -> int:
        """The number of hosts with at least `count` accelerators that have `needed` bytes each."""
        if not 1 <= count <= self.most:
            return 0
        if count not in self._sorted:
            self._sorted[count] = sorted(self._columns[count - 1])
        column = self._sorted[count]
        return len(column) - bisect_left(column, needed)


MOST_STAGES = 256


def stages_over_hosts(request: Request, kind: AcceleratorKind, depths: Depths) -> dict[int, int]:
    """By number of hosts, from two, the fewest stages of one accelerator that need that many."""
    found: dict[int, int] = {}
    for world in _worlds(request, depths.accelerators):
        allocation = request.demand.least(kind, Split(pipeline=world))
        if isinstance(allocation, Refusal) or allocation.bytes > kind.total:
            continue
        hosts = _hosts_for(world, allocation.bytes, depths)
        if hosts and hosts not in found:
            found[hosts] = world
    return found


def shares(world: int, able: Sequence[int], hosts: int) -> list[int]:
    """The number of the `world` stages on each host: as many as it can take, and at least one.

    `able` lists how many each host can take, the largest first.
    """
    taken, left = [], world
    for at, number in enumerate(able[:hosts]):
        share = min(number, left - (hosts - at - 1))
        taken.append(share)
        left -= share
    return taken


def _worlds(request: Request, there: int) -> Iterable[int]:
    if stated := request.stated:
        return [stated.world] if stated.pipeline == stated.world else []
    if request.count is not None:
        return [request.count]
    return range(2, min(there, request.profile.layers or MOST_STAGES, MOST_STAGES) + 1)


def _hosts_for(world: int, needed: int, depths: Depths) -> int:
    """The fewest hosts, at least two, that have room for `world` stages; 0 = not enough room."""
    hosts, left = 0, world
    for each in range(depths.most, 0, -1):
        there = depths.hosts(each, needed) - depths.hosts(each + 1, needed)
        more = min(there, -(-left // each))
        hosts, left = hosts + more, left - more * each
        if left <= 0:
            break
    if left > 0 or world < 2:
        return 0
    if hosts > 1:
        return hosts
    return 2 if depths.hosts(1, needed) > 1 else 0
