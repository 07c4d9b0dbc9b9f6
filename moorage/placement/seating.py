"""Turns the best candidate into seats: accelerators, bytes and ports."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from moorage.common.units import human_bytes
from moorage.inventory.claims import Resource
from moorage.inventory.devices import device_kind_on
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.placement.candidates import Candidate
from moorage.placement.demand import Allocation
from moorage.placement.fit import allocatable_memory, free_ports
from moorage.placement.links import join_seats
from moorage.placement.placement import Placement, Seat
from moorage.placement.request import Request
from moorage.placement.runtime import choose_runtime, hardware_of
from moorage.placement.view import HostView, bytes_on, level_room, view_of
from moorage.spec import Policy, RuntimeName, Strategy


def seats_of(request: Request, candidate: Candidate, replica: int) -> tuple[Seat, ...]:
    """One seat for each host of a candidate, the leader's first."""
    request = _for_candidate(request, candidate)
    number = len(candidate.views)
    if candidate.kind is None:
        seats = [_cpu_seat(request, candidate, at, replica) for at in range(number)]
    else:
        allocation = _allocation(request, candidate)
        seats = [_seat(request, candidate, at, allocation, replica) for at in range(number)]
    return join_seats(request, seats, {view.host.name: view.host for view in candidate.views})


def tokens_on(request: Request, candidate: Candidate) -> int:
    """The context that is served on a candidate."""
    if candidate.kind is None:
        return request.cpu_demand.fitted(candidate.budget, candidate.split.tensor).tokens
    return _allocation(_for_candidate(request, candidate), candidate).tokens


def with_seats(views: Sequence[HostView], seats: Sequence[Seat]) -> list[HostView]:
    """The hosts with the claims of these seats, for the next replica."""
    by_host = {seat.host: seat for seat in seats}
    return [
        view_of(_taken(view.host, by_host[view.host.name]), view.smallest)
        if view.host.name in by_host
        else view
        for view in views
    ]


def _for_candidate(request: Request, candidate: Candidate) -> Request:
    return request.with_layers(candidate.layers) if candidate.layers else request


def _allocation(request: Request, candidate: Candidate) -> Allocation:
    """Memory to take of each accelerator of a candidate; exceeds its room only if overcommitted."""
    assert candidate.kind is not None
    budget = max(candidate.budget, candidate.needed)
    return request.demand.fitted(candidate.kind, candidate.split, budget)


def _cpu_seat(request: Request, candidate: Candidate, at: int, replica: int) -> Seat:
    host, ranks = candidate.views[at].host, candidate.split.tensor
    hardware, cores = hardware_of(candidate.views[at], None), request.spec.placement.cores
    allocation = request.cpu_demand.fitted(candidate.budget, ranks)
    tokens = allocation.tokens
    if request.spec.placement.policy == Policy.BASELINE:
        tokens = min(tokens, request.demand.request.capped_context)
    part = f", one of {ranks} ranks," if ranks > 1 else ""
    threads = "shares the cores" if cores == "auto" else f"{cores} cores"
    return Seat(
        replica=replica,
        host=host.name,
        runtime=choose_runtime(request.spec, request.engine, hardware),
        ram_bytes=allocation.bytes,
        cores=0 if cores == "auto" else cores,
        **ports_on(request, host),
        tokens=tokens,
        cache_bytes=allocation.cache,
        tensor=ranks,
        cpu_need=allocation.need,
        reason=f"on CPU{part} with {human_bytes(allocation.bytes)} of RAM, {threads},"
        f" {tokens} tokens{_cut(request, tokens)}",
    )


def _seat(
    request: Request, candidate: Candidate, at: int, allocation: Allocation, replica: int
) -> Seat:
    assert candidate.kind is not None
    host, left = candidate.views[at].host, candidate.rooms[at][-1]
    chosen = _accelerators(request, candidate, at, allocation)
    claimed = tuple(bytes_on(item, candidate.kind, allocation.bytes) for item in chosen)
    warning = f"; overcommitted: only {human_bytes(left)} is free, the engine may fail to start"
    over = warning if allocation.bytes > left else ""
    hardware = hardware_of(candidate.views[at], candidate.kind)
    runtime = choose_runtime(request.spec, request.engine, hardware)
    return Seat(
        replica=replica,
        host=host.name,
        runtime=runtime,
        accelerator_type=candidate.kind.type,
        accelerators=tuple(item.index for item in chosen),
        accelerator_bytes=claimed,
        devices=identifiers(request, host, runtime, chosen),
        ram_bytes=request.ram_for(candidate.kind.type, sum(claimed)),
        **ports_on(request, host),
        utilization=allocation.utilization,
        tokens=allocation.tokens,
        tensor=candidate.split.tensor,
        pipeline=candidate.split.pipeline,
        need=allocation.need,
        layers=candidate.layers,
        reason=f"{len(chosen)} x {candidate.kind}, {human_bytes(allocation.bytes)} of each for"
        f" {allocation.tokens} tokens{_cut(request, allocation.tokens)}{over}{_in_ram(request)}"
        f"{_unlinked_note(host, chosen)}",
    )


def _in_ram(request: Request) -> str:
    """A note on the number of layers on accelerators, if some stay in RAM."""
    if not request.layers:
        return ""
    every, ram = request.divisible_layers, human_bytes(request.ram_of_layers)
    return f"; {request.layers} of {every} layers, as many as fit, the others take {ram} of RAM"


def _cut(request: Request, tokens: int) -> str:
    wanted = request.demand.request.context
    return f" of {wanted}, as many as fit" if tokens < wanted else ""


def _accelerators(
    request: Request, candidate: Candidate, at: int, allocation: Allocation
) -> list[Accelerator]:
    """The emptiest usable accelerators, or with bin-packing the fullest that still have room.

    Several of them are of as few groups that NVLink joins as possible.
    """
    view, taken, kind = candidate.views[at], candidate.rooms[at], candidate.kind
    assert kind is not None
    keys, closed = request.listed_accelerators, view.room.occupied
    listed = {index for _, host, index in keys if host == view.host.name}
    packs = request.spec.placement.strategy == Strategy.BINPACK
    usable = [
        (left if packs else -left, item)
        for left, item in zip(view.room.memory, view.host.accelerators, strict=True)
        if view.kind_of(item) == kind
        and level_room(left, item, kind) >= min(allocation.bytes, taken[-1])
        and (not listed or item.index in listed)
        and item.index not in closed
    ]
    usable.sort(key=lambda pair: pair[0])
    chosen = _of_few_groups(usable, len(taken), view.host.links)
    return sorted(chosen, key=lambda item: item.index)


def _of_few_groups(
    usable: Sequence[tuple[int, Accelerator]], count: int, links: Sequence[Sequence[int]]
) -> list[Accelerator]:
    """The best accelerators of as few linked groups as possible; the best have the least rank."""
    if count < 2 or not links:
        return [item for _, item in usable[:count]]
    groups: dict[int, list[tuple[int, Accelerator]]] = defaultdict(list)
    for pair in usable:
        groups[_group_of(pair[1].index, links)].append(pair)
    chosen: list[Accelerator] = []
    while groups and len(chosen) < count:
        missing = count - len(chosen)
        parts = {key: own[:missing] for key, own in groups.items()}
        # Of the groups that have enough the one with the best, else the largest.
        ranks = [(-len(own), sum(rank for rank, _ in own), key) for key, own in parts.items()]
        _, _, best = min(ranks)
        chosen += [item for _, item in parts[best]]
        del groups[best]
    return chosen


def _group_of(index: int, links: Sequence[Sequence[int]]) -> int:
    """The first index of an accelerator's linked group; its own index if it is in none."""
    return next((group[0] for group in links if index in group), index)


def _unlinked_note(host: HostSnapshot, chosen: Sequence[Accelerator]) -> str:
    groups = {_group_of(item.index, host.links) for item in chosen} if host.links else ()
    return "; NVLink does not join all of them" if len(groups) > 1 else ""


def identifiers(
    request: Request, host: HostSnapshot, runtime: RuntimeName, chosen: Sequence[Accelerator]
) -> tuple[str, ...]:
    """Identifiers by which a container gets accelerators; none = it gets them by their indexes."""
    contained = runtime is RuntimeName.DOCKER and not request.spec.engine.container.privileged
    if not contained or host.exposes_all_gpus:
        return ()
    known = all(item.uuid and device_kind_on(host, item.type).requested for item in chosen)
    return tuple(item.uuid for item in chosen) if known else ()


def ports_on(request: Request, host: HostSnapshot) -> dict[str, Any]:
    """The serving port on a host, as stated or the lowest free one, and further ports by use."""
    stated, names = request.spec.port, request.engine.services(request.spec)
    if stated == "auto":
        first, *others = free_ports(host, 1 + len(names))
    else:
        first, others = stated, free_ports(host, len(names), taken=(stated,))
    return {"port": first, "services": dict(zip(names, others, strict=True))}


def _taken(host: HostSnapshot, seat: Seat) -> HostSnapshot:
    """The host with the seat's claims added, and deducted from its free memory."""
    held = dict(zip(seat.accelerators, seat.accelerator_bytes, strict=True))
    ram = seat.ram_bytes + (sum(seat.accelerator_bytes) if host.unified_memory else 0)
    free = ((item, item.memory_free - held.get(item.index, 0)) for item in host.accelerators)
    return host.model_copy(
        update={
            "claims": (*host.claims, *seat.claims),
            "ram_free": max(0, host.ram_free - ram),
            "accelerators": tuple(
                item.model_copy(update={"memory_free": max(0, left)}) for item, left in free
            ),
        }
    )


def overcommit_warnings(placement: Placement, fleet: FleetSnapshot) -> tuple[str, ...]:
    """Warnings about claims on accelerators beyond their free memory.

    None if a release stops first: the snapshot does not show its memory as free yet.
    """
    claimed: Counter[tuple[str, int]] = Counter()
    for claim in placement.claims:
        if claim.resource is Resource.ACCELERATOR:
            claimed[claim.host, claim.index] += claim.amount
    free = {(host, index): allocatable_memory(fleet.host(host), index) for host, index in claimed}
    return tuple(
        f"overcommitted: {human_bytes(amount)} of accelerator {index} of {host} are claimed,"
        f" {human_bytes(free[host, index])} are free; the engine may fail to start"
        for (host, index), amount in claimed.items()
        if amount > free[host, index] and not placement.stop_first
    )
