"""Candidates: hosts and accelerators that could take a replica, and the possible layouts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.memory.need import largest
from moorage.placement.demand import Split
from moorage.placement.fit import holders, ram_refusal
from moorage.placement.request import Request
from moorage.placement.view import TOLERANCE, AcceleratorKind, HostView


@dataclass(slots=True)
class Candidate:
    """One way to seat the replica.

    Attributes:
        rooms: For each host the room on each accelerator to take, largest first; on CPU the room in
            its RAM.
        kind: The kind of accelerator; None on CPU.
        needed: Bytes to take of each accelerator, or of RAM on CPU.
        is_full: Whether the whole context fits.
        layers: Layers on the accelerators while the others stay in RAM; 0 = all on accelerators.
        points: Points of each term, once it is scored.
        score: Their sum, out of 100.
    """

    views: tuple[HostView, ...]
    rooms: tuple[list[int], ...]
    kind: AcceleratorKind | None
    split: Split
    needed: int
    is_full: bool = True
    layers: int = 0
    points: tuple[float, ...] = ()
    score: float = 0.0

    @property
    def budget(self) -> int:
        """Bytes that every accelerator can give."""
        return min(room[-1] for room in self.rooms)


MOST_ON_ONE_HOST = 64


def splits_on_one_host(request: Request, most: int) -> Iterator[tuple[int, Split]]:
    """Numbers of accelerators on one host, the fewest first, each with the model's split over them.

    The largest host has `most` of a kind.
    """
    counts: Iterable[int] = range(1, min(most, MOST_ON_ONE_HOST) + 1)
    if request.count is not None:
        # If the count is 0 but sizes are stated, the product of the sizes counts.
        counts = [request.count or (request.stated.world if request.stated else 0)]
    for count in counts:
        if split := request.stated_split or request.derived_split(count):
            yield count, split


def within_ram(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int]
) -> list[int]:
    """Bytes that each of these accelerators can give within the RAM that the host has left.

    An extended cache takes more RAM the more accelerator memory is claimed; with unified memory
    both come from the same bytes. `room` lists the room on each accelerator, largest first.
    """
    unified = view.host.unified_memory
    if not room or not (unified or request.spec.extended_kv_cache):
        return room

    def fits(each: int) -> bool:
        claimed = each * len(room)
        if view.smallest:  # larger accelerators of the kind are claimed in proportion
            claimed += claimed // TOLERANCE
        needed = request.ram_for(kind.type, claimed) + (claimed if unified else 0)
        return needed <= view.room.ram

    if fits(room[0]):
        return room
    each = largest(fits, room[0]) if fits(1) else 0
    return [min(left, each) for left in room]


def tightest(room: list[int], count: int, needed: int) -> list[int]:
    """The room on the fullest accelerators that still have `needed` bytes, largest first."""
    if room[-1] >= needed:
        return room[-count:]
    fitting = sum(1 for left in room if left >= needed)
    return room[fitting - count : fitting]


def cpu_refusal(request: Request, view: HostView, needed: int) -> Refusal | None:
    """Why a host cannot run the replica on its processors; None = it can."""
    host, room = view.host, view.room
    if needed > room.ram:
        return ram_refusal(host, needed, room.ram)
    wanted = request.spec.placement.cores
    cores = 1 if wanted == "auto" else wanted
    if cores > room.cores:
        held_by = holders(host, Resource.CORES)
        return Refusal(Reason.CORES, needed=cores, available=room.cores, held_by=held_by)
    return None
