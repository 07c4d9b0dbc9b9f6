"""Candidates: hosts and accelerators that could take a replica, and its possible shapes there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.memory.need import largest
from moorage.placement.demand import Split
from moorage.placement.fit import holders
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView


@dataclass(slots=True)
class Candidate:
    """One way to seat the replica.

    Attributes:
        views: The hosts, the leader's first.
        rooms: By host the room of the accelerators that would be taken, most first; on CPU the
            room of its RAM.
        kind: The kind of accelerator; None on CPU.
        split: How the model is cut up.
        needed: Bytes that are taken of each accelerator, or of RAM on CPU.
        is_full: Whether the whole context fits.
    """

    views: tuple[HostView, ...]
    rooms: tuple[list[int], ...]
    kind: AcceleratorKind | None
    split: Split
    needed: int
    is_full: bool = True

    @property
    def budget(self) -> int:
        """Bytes that every accelerator can give."""
        return min(room[-1] for room in self.rooms)


@dataclass(slots=True)
class ScoredCandidate:
    """A candidate with its points out of 100, in all and by term."""

    candidate: Candidate
    points: tuple[float, ...]
    score: float


MOST_ON_ONE_HOST = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """One shape.

    Attributes:
        count: Accelerators on one host.
        split: How the model is cut up over all of them.
    """

    count: int
    split: Split


def layouts_on_one_host(request: Request, most: int) -> Iterator[Layout]:
    """Shapes on one host, the fewest accelerators first.

    Args:
        request: What is to be placed.
        most: Accelerators of one kind on the largest host.
    """
    if request.stated:
        split = Split(request.stated.tensor, request.stated.pipeline)
        yield Layout(count=request.count or request.stated.world, split=split)
        return
    if request.count is not None:
        yield Layout(count=request.count, split=Split(tensor=request.count))
        return
    for count in range(1, min(most, MOST_ON_ONE_HOST) + 1):
        yield Layout(count=count, split=Split(tensor=count))


def within_ram(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int]
) -> list[int]:
    """Bytes that each accelerator can give where all are taken, with the RAM that goes with them.

    An extended cache takes more RAM the more memory is claimed; with unified memory both come
    from the same bytes.

    Args:
        request: What is to be placed.
        view: The host.
        kind: The kind of the accelerators.
        room: The room of those that would be taken, most first.
    """
    unified = view.host.unified_memory
    if not room or not (unified or request.spec.extended_kv_cache):
        return room

    def fits(each: int) -> bool:
        claimed = each * len(room)
        needed = request.ram_for(kind.type, claimed) + (claimed if unified else 0)
        return needed <= view.room.ram

    if fits(room[0]):
        return room
    each = largest(fits, room[0]) if fits(1) else 0
    return [min(left, each) for left in room]


def tightest(room: list[int], count: int, needed: int) -> list[int]:
    """The room of the fullest accelerators that still have what is needed, most room first."""
    if room[-1] >= needed:
        return room[-count:]
    fitting = sum(1 for left in room if left >= needed)
    return room[fitting - count : fitting]


def cpu_refusal(request: Request, view: HostView, needed: int) -> Refusal | None:
    """Why a host cannot run the replica on its processors; None = it can.

    Args:
        request: What is to be placed.
        view: The host.
        needed: Bytes of RAM.
    """
    host, room = view.host, view.room
    if needed > room.ram:
        held_by = holders(host, Resource.RAM)
        return Refusal(Reason.RAM, needed=needed, available=room.ram, held_by=held_by)
    wanted = request.spec.placement.cores
    cores = 1 if wanted == "auto" else wanted
    if cores > room.cores:
        held_by = holders(host, Resource.CORES)
        return Refusal(Reason.CORES, needed=cores, available=room.cores, held_by=held_by)
    return None


def ram_refusal(request: Request, view: HostView, kind: AcceleratorKind, claimed: int) -> Refusal:
    """The refusal for the RAM that goes with so many bytes of accelerators."""
    return Refusal(
        Reason.RAM,
        needed=request.ram_for(kind.type, claimed),
        available=view.room.ram,
        held_by=holders(view.host, Resource.RAM),
    )
