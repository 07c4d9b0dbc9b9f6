"""The verdict on each host: its score, or why it cannot take the replica, with numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.placement.candidates import Candidate, cpu_refusal, splits_on_one_host, within_ram
from moorage.placement.explanation import Verdict
from moorage.placement.fit import holders, occupied_note, ram_refusal
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView


def verdicts_of(
    request: Request,
    views: Sequence[HostView],
    able: Sequence[HostView],
    refused: dict[str, Verdict],
    scored: Sequence[Candidate],
) -> tuple[Verdict, ...]:
    """One verdict for each host, in the order of the fleet.

    The filters let the hosts in `able` pass, and gave their verdicts on the others, `refused`. A
    host in several candidates gets the verdict of its best one.
    """
    verdicts = refused.copy()
    for one in scored:
        score = one.score
        for view, room in zip(one.views, one.rooms, strict=True):
            host = view.host.name
            other = verdicts.get(host)
            if other is None or other.score < score:
                verdicts[host] = _accept(host, one, room)
    if len(verdicts) < len(views):
        rest = [view for view in able if view.host.name not in verdicts]
        verdicts.update(_refuse_all(request, rest, scored[0] if scored else None))
    return tuple([verdicts[view.host.name] for view in views])


def _accept(host: str, one: Candidate, room: list[int]) -> Verdict:
    count = len(room) if one.kind else 0
    needed, left = one.needed, room[-1]
    note = "more than is free, as the spec allows" if count and needed > left else ""
    return Verdict(host, None, note, needed, left, count, 0, (), one.score, one.points)


def _refuse_all(
    request: Request, views: Sequence[HostView], taken: Candidate | None
) -> Iterator[tuple[str, Verdict]]:
    """A verdict for each host that is not a candidate.

    It is measured against the shape of the candidate `taken`, else against the one that it misses
    by the least.
    """
    shape = taken if taken and taken.kind and len(taken.views) == 1 else None
    cache: dict[tuple[AcceleratorKind, int], list[Shape] | Refusal] = {}
    must_span = request.must_span
    for view in views:
        name = view.host.name
        if must_span:
            yield name, _joint_verdict(request, view, taken is not None)
        elif view.groups:
            yield name, _refuse(request, view, shape, cache)
        else:
            full = taken is not None and taken.kind is None and taken.is_full
            needed = (request.cpu_demand.full() if full else request.cpu_demand.least()).bytes
            refusal = cpu_refusal(request, view, needed)
            refusal = refusal or Refusal(Reason.NO_ACCELERATOR, "accelerators are preferred")
            yield name, Verdict.of(name, refusal)


def with_replica_note(view: HostView, verdict: Verdict) -> Verdict:
    """The verdict; a refusal also counts replicas of the same placement on the host."""
    placed = [claim for claim in view.host.claims if not claim.release]
    number = sum(claim.resource == Resource.PORT and not claim.links for claim in placed)
    if not number or not verdict.refusal:
        return verdict
    count = f"{number} of the replicas placed here already"
    return replace(verdict, note=f"{verdict.note}; {count}" if verdict.note else count)


@dataclass(slots=True)
class Shape:
    """One way in which a host could take the replica.

    Attributes:
        obstacle: Why splitting over more accelerators, which would help, is impossible; empty = it
            is possible, or would not help.
    """

    count: int
    needed: int
    obstacle: str


def _shapes(
    request: Request, kind: AcceleratorKind, there: int, taken: Candidate | None
) -> list[Shape] | Refusal:
    """The shapes that hosts with `there` accelerators of a kind may miss by the least, if any.

    Hosts with at least as many accelerators as the candidate takes are measured against its shape.
    """
    demand, full = request.demand, False
    splits = [one for one in splits_on_one_host(request, there) if one[0] <= there]
    if taken and len(taken.rooms[0]) <= there:
        splits, full = [(len(taken.rooms[0]), taken.split)], taken.is_full
    if not splits:
        wanted = request.count or request.tensor_step
        note = f"{wanted} accelerators requested, {there} x {kind} there"
        return Refusal(Reason.NO_ACCELERATOR, note, count=wanted, there=there)
    possible = []
    refused: list[tuple[int, Refusal]] = []
    for count, split in reversed(splits):
        allocation = (demand.full if full else demand.least)(kind, split)
        if isinstance(allocation, Refusal):
            refused.append((count, allocation))
        else:
            obstacle = refused[0][1].note if refused and allocation.bytes > kind.total else ""
            possible.append(Shape(count, allocation.bytes, obstacle))
    if not possible:
        # Report the smallest shape that divides the heads, else the largest shape.
        divided = [pair for pair in refused if pair[1].reason is not Reason.PARALLELISM]
        count, refusal = divided[-1] if divided else refused[0]
        return Refusal(refusal.reason, refusal.note, count=count)
    # Drop shapes that hosts always miss by more than another shape, whatever room they have.
    worst = min(shape.needed for shape in possible)
    return [one for one in reversed(possible) if one.needed - kind.total <= worst]


def _refuse(
    request: Request,
    view: HostView,
    taken: Candidate | None,
    cache: dict[tuple[AcceleratorKind, int], list[Shape] | Refusal],
) -> Verdict:
    """The verdict for the kind of accelerator that the host misses by the least."""
    verdicts = []
    for kind, room in view.groups.items():
        key = (kind, len(room))
        shapes = cache.get(key)
        if shapes is None:
            shapes = cache[key] = _shapes(request, kind, len(room), taken)
        if isinstance(shapes, list):
            verdicts.append(_measure(request, view, kind, room, shapes))
        else:
            verdicts.append(Verdict.of(view.host.name, shapes))
    if len(verdicts) == 1:
        return verdicts[0]
    return min(verdicts, key=lambda one: one.needed - one.available)


def _measure(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int], shapes: list[Shape]
) -> Verdict:
    """Measure the host against the shape that it misses by the least; called for many hosts."""
    name, nearest = view.host.name, shapes[0]
    available = room[nearest.count - 1]
    extended, unified = request.spec.extended_kv_cache, view.host.unified_memory
    if extended:
        claims = (shape.needed * shape.count for shape in shapes)
        least = min(request.ram_for(kind.type, claim) for claim in claims)
        if least > view.room.ram:
            return Verdict.of(name, ram_refusal(view.host, least, view.room.ram))
    if extended or unified or len(shapes) > 1:
        lefts = [within_ram(request, view, kind, room[: one.count])[-1] for one in shapes]
        pairs = zip(shapes, lefts, strict=True)
        nearest, available = min(pairs, key=lambda pair: pair[0].needed - pair[1])
    if available < nearest.needed <= room[nearest.count - 1] and not unified:
        needed = request.ram_for(kind.type, nearest.needed * nearest.count)
        return Verdict.of(name, ram_refusal(view.host, needed, view.room.ram))
    return Verdict(
        name,
        # More accelerators would help, and only the shape of the model prevents that.
        Reason.PARALLELISM if nearest.obstacle else Reason.ACCELERATOR_MEMORY,
        nearest.obstacle or occupied_note(view.room.occupied),
        nearest.needed,
        available,
        nearest.count,
        len(room),
        holders(view.host, Resource.ACCELERATOR) if view.host.claims else (),
    )


def _joint_verdict(request: Request, view: HostView, placed: bool) -> Verdict:
    """The verdict if the user wants several hosts for one replica."""
    name = view.host.name
    if refusal := _part_refusal(request, view):
        return Verdict.of(name, refusal)
    if placed:
        return Verdict(name, note="could take part; other hosts were preferred")
    site = f" of its site ({view.host.site})" if view.host.site else ""
    note = f"could take part, but {request.hosts} hosts are requested and too few others{site} can"
    return Verdict(name, Reason.TOO_FEW_HOSTS, note)


def _part_refusal(request: Request, view: HostView) -> Refusal | None:
    """What the host itself lacks for its part of the replica; None = nothing."""
    if not view.groups:
        if uneven := request.demand.uneven(request.hosts):
            return Refusal(Reason.PARALLELISM, uneven)
        return cpu_refusal(request, view, request.cpu_demand.least(request.hosts).bytes)
    refusals = []
    for kind, room in view.groups.items():
        for count in range(1, len(room) + 1):
            if request.count not in (None, count * request.hosts):
                continue
            refusal = _lack(request, view, kind, room[:count], len(room))
            if refusal is None:
                return None
            refusals.append(refusal)
    if measured := [one for one in refusals if one.needed]:
        return min(measured, key=lambda one: one.needed - one.available)
    note = f"{request.count} accelerators over {request.hosts} hosts are more than it has"
    if request.count and request.count < request.hosts:
        least = f"{request.hosts} hosts need at least {request.hosts} accelerators"
        note = f"{least}, {request.count} requested"
    return refusals[0] if refusals else Refusal(Reason.NO_ACCELERATOR, note)


def _lack(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int], there: int
) -> Refusal | None:
    """What these accelerators lack for a part of the replica; None = nothing."""
    count = len(room)
    split = request.stated_split or request.derived_split(count, request.hosts)
    if split is None:
        note = f"{count} accelerators on each host are no multiple of {request.tensor_step} ranks"
        return Refusal(Reason.PARALLELISM, note)
    allocation = request.demand.least(kind, split)
    if isinstance(allocation, Refusal):
        return Refusal(Reason.PARALLELISM, allocation.note)
    needed, available = allocation.bytes, within_ram(request, view, kind, room)[-1]
    if needed <= available:
        return None
    if needed <= room[-1] and not view.host.unified_memory:
        return ram_refusal(view.host, request.ram_for(kind.type, needed * count), view.room.ram)
    held_by = holders(view.host, Resource.ACCELERATOR)
    note = occupied_note(view.room.occupied)
    return Refusal(Reason.ACCELERATOR_MEMORY, note, needed, available, count, there, held_by)
