"""Seats over several hosts: tensor parallel within each, pipeline parallel across them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest

from moorage.placement.demand import Ask, Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.links import unjoinable
from moorage.placement.offer import Offer
from moorage.placement.one_host import tightest
from moorage.placement.parallelism import Parallelism
from moorage.placement.request import Request
from moorage.placement.stages import Depths, Stages, shares, stages_over_hosts
from moorage.placement.topology import ParallelSizes, Topology, multi_host_topology
from moorage.placement.view import HostView
from moorage.placement.within_ram import within_ram
from moorage.spec import Distributed, Strategy


@dataclass(slots=True)
class Part:
    """What one host can give: the room of accelerators of one kind, most first."""

    view: HostView
    room: list[int]


def many_hosts(request: Request, views: Sequence[HostView]) -> list[Offer]:
    """One offer a kind of accelerator: the fewest hosts first, then the fewest accelerators.

    Hosts may take part with some of their accelerators. Where hosts differ too much for equal
    shares, every accelerator becomes a pipeline stage of its own, if Ray joins the hosts: vLLM
    itself shares a rank only between hosts that give the same number.
    """
    by_kind: dict[AcceleratorKind, list[Part]] = defaultdict(list)
    for view in views:
        if unjoinable(request, view.host):
            continue
        for kind, room in view.groups.items():
            by_kind[kind].append(Part(view, room))
    offers = (_fewest_hosts(request, kind, parts) for kind, parts in by_kind.items())
    return [offer for offer in offers if offer]


def _fewest_hosts(request: Request, kind: AcceleratorKind, parts: list[Part]) -> Offer | None:
    depths = Depths([part.room for part in parts])
    # How many accelerators of a host become stages is not known yet, so RAM for all is needed.
    safe = [Part(p.view, within_ram(request, p.view, kind, p.room)) for p in parts]
    stages: dict[int, Stages] | None = None
    for hosts in request.host_counts(len(parts)):
        if offer := _even(request, kind, parts, depths, hosts):
            return offer
        if request.joined_by != Distributed.RAY:
            continue
        if stages is None:
            stages = stages_over_hosts(request, kind, Depths([part.room for part in safe]))
        if hosts in stages:
            return _uneven(request, kind, safe, hosts, stages[hosts])
    return None


def _even(
    request: Request, kind: AcceleratorKind, parts: list[Part], depths: Depths, hosts: int
) -> Offer | None:
    """So many hosts with the same number of accelerators each."""
    for count, split in _even_splits(request, depths.most, hosts):
        full, least = request.demand.full(kind, split), request.demand.least(kind, split)
        for ask, is_full in ((full, True), (least, False)):
            if isinstance(ask, str) or ask.bytes > kind.total:
                continue
            if depths.hosts(count, ask.bytes) < hosts:
                continue
            packs = is_full and request.spec.placement.strategy == Strategy.BINPACK
            able = [*_able(request, kind, parts, count, ask.bytes, packs)]
            if len(able) >= hosts:
                chosen = _best(able, hosts, packs)
                return _offer(chosen, kind, split, ask, is_full)
    return None


def _even_splits(request: Request, most: int, hosts: int) -> Iterator[tuple[int, Split]]:
    if request.stated:
        count, rest = divmod(request.stated.world, hosts)
        if not rest and is_possible(request.stated, [count] * hosts):
            yield count, Split(request.stated.tensor, request.stated.pipeline)
        return
    for count in range(1, most + 1):
        if request.count is None or request.count == count * hosts:
            yield count, Split(tensor=count, pipeline=hosts)


def is_possible(stated: Parallelism | None, accelerators: list[int]) -> bool:
    """Whether vLLM can lay the stated sizes out over hosts with so many accelerators."""
    sizes = ParallelSizes()
    if stated:
        sizes = ParallelSizes(
            tensor=stated.tensor,
            pipeline=stated.pipeline,
            prefill=stated.prefill_context,
            data=stated.data,
        )
    return isinstance(multi_host_topology(accelerators, sizes), Topology)


def _able(
    request: Request,
    kind: AcceleratorKind,
    parts: list[Part],
    count: int,
    needed: int,
    packs: bool,
) -> Iterator[Part]:
    """The hosts that have so many accelerators with the room, and the RAM beside them."""
    for part in parts:
        if len(part.room) < count or part.room[count - 1] < needed:
            continue
        room = tightest(part.room, count, needed) if packs else part.room[:count]
        room = within_ram(request, part.view, kind, room)
        if room[-1] >= needed:
            yield Part(part.view, room)


def _best(able: list[Part], hosts: int, packs: bool) -> list[Part]:
    """The emptiest hosts, or with bin-packing the fullest that still do."""
    if packs:
        return nsmallest(hosts, able, key=lambda part: part.room[0])
    return nlargest(hosts, able, key=lambda part: part.room[-1])


def _uneven(
    request: Request, kind: AcceleratorKind, parts: list[Part], hosts: int, stages: Stages
) -> Offer:
    """The hosts with the most accelerators that have the room, each with as many as it takes."""
    needed, split = stages.ask.bytes, Split(pipeline=stages.world)
    able = [Part(p.view, [left for left in p.room if left >= needed]) for p in parts]
    able.sort(key=lambda part: len(part.room), reverse=True)
    numbers = shares(stages.world, [len(part.room) for part in able], hosts)
    chosen = [Part(p.view, p.room[:n]) for p, n in zip(able, numbers, strict=False)]
    full = request.demand.full(kind, split)
    is_full = isinstance(full, Ask) and full.bytes <= min(part.room[-1] for part in chosen)
    return _offer(chosen, kind, split, stages.ask, is_full)


def _offer(
    parts: Sequence[Part], kind: AcceleratorKind, split: Split, ask: Ask, is_full: bool
) -> Offer:
    views, rooms = tuple(part.view for part in parts), tuple(part.room for part in parts)
    return Offer(views, rooms, kind, split, ask.bytes, is_full)
