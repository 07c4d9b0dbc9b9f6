"""The strategies that search for candidates, and their order."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from moorage.common.refusal import Refusal
from moorage.placement.candidates import (
    Candidate,
    cpu_refusal,
    splits_on_one_host,
    tightest,
    within_ram,
)
from moorage.placement.demand import Allocation, Split
from moorage.placement.links import join_refusal
from moorage.placement.many_hosts import many_hosts
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView, narrowed, without_occupied
from moorage.spec import Strategy

Search = Callable[[Request, Sequence[HostView]], list[Candidate]]


def strategies(request: Request) -> tuple[Search, ...]:
    """The strategies for a request, in order. Listed accelerators are a filter, not a strategy."""
    alone, spans = not request.must_span, request.spans_hosts
    table: tuple[tuple[bool, Search], ...] = (
        (alone and not request.on_cpu, one_host),
        (spans and not request.on_cpu, many_hosts),
        (request.may_overcommit, overcommitted),
        (alone and not request.on_cpu and request.divisible_layers > 1, partly_offloaded),
        (alone and not request.count, on_cpu),
        (spans and not request.count, on_many_cpus),
    )
    return tuple(strategy for concerns, strategy in table if concerns)


def first_candidates(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """The candidates of the first strategy that finds any."""
    for strategy in strategies(request):
        if candidates := strategy(request, views):
            # Prefer hosts on which the whole context fits, whatever their score.
            return [candidate for candidate in candidates if candidate.is_full] or candidates
    return []


def one_host(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """The hosts that can take the replica on the smallest number of accelerators that suffices."""
    largest: dict[AcceleratorKind, int] = {}
    demand = request.demand
    for view in views:
        for kind, room in view.groups.items():
            if len(room) > largest.get(kind, 0):
                largest[kind] = len(room)
    for count, split in splits_on_one_host(request, max(largest.values(), default=0)):
        bounds: dict[AcceleratorKind, tuple[int, int]] = {}
        for kind in (kind for kind, most in largest.items() if count <= most):
            nowhere = kind.total + 1  # more than any accelerator of the kind has
            least = full = _bytes(demand.least(kind, split), nowhere)
            if least < nowhere:
                full = _bytes(demand.full(kind, split), nowhere)
            bounds[kind] = (least, full)
        # Read the hosts only if an empty accelerator would have room.
        possible = any(needed <= kind.total for kind, (needed, _) in bounds.items())
        if possible and (candidates := _candidates(request, views, count, split, bounds)):
            return candidates
    return []


def _bytes(allocation: Allocation | Refusal, nowhere: int) -> int:
    return nowhere if isinstance(allocation, Refusal) else allocation.bytes


def _candidates(
    request: Request,
    views: Sequence[HostView],
    count: int,
    split: Split,
    bounds: dict[AcceleratorKind, tuple[int, int]],
) -> list[Candidate]:
    packs = request.spec.placement.strategy == Strategy.BINPACK
    extended = request.spec.extended_kv_cache is not None
    candidates = []
    for view in views:
        for kind, room in view.groups.items():
            if len(room) < count:
                continue
            least, full = bounds[kind]
            if room[count - 1] < least:
                continue
            chosen = room[:count]
            limited = extended or view.host.unified_memory
            if limited:
                chosen = within_ram(request, view, kind, chosen)
            left = chosen[-1]
            if left >= full:
                if packs and len(room) > count:
                    chosen = tightest(room, count, full)
                    chosen = within_ram(request, view, kind, chosen) if limited else chosen
                candidates.append(Candidate((view,), (chosen,), kind, split, full))
            elif left >= least:
                candidates.append(Candidate((view,), (chosen,), kind, split, left, is_full=False))
    return candidates


def partly_offloaded(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """The hosts that can take the most layers on accelerators and the others in RAM."""
    for layers in range(request.divisible_layers - 1, 0, -1):
        part = request.with_layers(layers)
        roomy = [
            view
            for view in views
            if all(part.ram_for(kind.type, 0) <= view.room.ram for kind in view.groups)
        ]
        if candidates := one_host(part, roomy):
            return [replace(candidate, layers=layers) for candidate in candidates]
    return []


def on_cpu(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """The hosts without usable accelerators that have enough RAM and cores."""
    least, full = request.cpu_demand.least().bytes, request.cpu_demand.full().bytes
    candidates = []
    for view in views:
        if not (view.groups or cpu_refusal(request, view, least)):
            left = view.room.ram
            one = Candidate((view,), ([left],), None, Split(), min(full, left), left >= full)
            candidates.append(one)
    return candidates


def on_many_cpus(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """For each site, a candidate of the fewest hosts with enough RAM and cores.

    It is tensor-parallel alone: with pipeline stages on CPU, vLLM 0.32 dies at its first request.
    """
    by_site: dict[str, list[HostView]] = defaultdict(list)
    for view in views:
        if not view.groups and not join_refusal(request, view.host):
            by_site[view.host.site].append(view)
    candidates = (_fewest_cpus(request, there) for there in by_site.values())
    return [candidate for candidate in candidates if candidate]


def _fewest_cpus(request: Request, there: Sequence[HostView]) -> Candidate | None:
    for hosts in request.host_counts(len(there)):
        stated = request.stated
        if request.demand.uneven(hosts) or (stated and not stated.tensor == stated.world == hosts):
            continue
        least = request.cpu_demand.least(hosts).bytes
        full = request.cpu_demand.full(hosts).bytes
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
        return Candidate(taken, rooms, None, Split(tensor=hosts), needed, is_full)
    return None


def overcommitted(request: Request, views: Sequence[HostView]) -> list[Candidate]:
    """The candidates as if the accelerators were empty, with the smallest claim.

    Left out are accelerators that are too small even when empty, or occupied, and hosts with
    unified memory, since overcommitting those makes the host itself fail.
    """
    views = [without_occupied(view) for view in views if not view.host.unified_memory]
    empty = [
        narrowed(view, {kind: [kind.total] * len(room) for kind, room in view.groups.items()})
        for view in views
    ]
    candidates = [] if request.must_span else one_host(request, empty)
    if not candidates and request.spans_hosts:
        candidates = many_hosts(request, empty)
    there = {view.host.name: view for view in views}
    found = []
    for candidate in candidates:
        if kind := candidate.kind:
            own = tuple(there[view.host.name] for view in candidate.views)
            pairs = zip(own, candidate.rooms, strict=True)
            rooms = tuple(view.groups[kind][: len(room)] for view, room in pairs)
            needed = _bytes(request.demand.least(kind, candidate.split), candidate.needed)
            found.append(Candidate(own, rooms, kind, candidate.split, needed, is_full=False))
    return found
