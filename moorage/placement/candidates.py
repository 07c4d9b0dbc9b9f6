"""Candidates: hosts and accelerators that could take a replica, and its possible shapes there."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.inventory.claims import Resource
from moorage.memory.need import largest
from moorage.placement.demand import Split
from moorage.placement.fit import holders, ram_refusal
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView


@dataclass(slots=True)
class Candidate:
    """One way to seat the replica.

    Attributes:
        rooms: By host the room of the accelerators that would be taken, most first; on CPU the
            room of its RAM.
        kind: The kind of accelerator; None on CPU.
        needed: Bytes that are taken of each accelerator, or of RAM on CPU.
        is_full: Whether the whole context fits.
        layers: Layers on the accelerators while the others stay in RAM; 0 = all are there.
    """

    views: tuple[HostView, ...]
    rooms: tuple[list[int], ...]
    kind: AcceleratorKind | None
    split: Split
    needed: int
    is_full: bool = True
    layers: int = 0

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
    """One shape: accelerators on one host, and how the model is cut up over all of them."""

    count: int
    split: Split


def layouts_on_one_host(request: Request, most: int) -> Iterator[Layout]:
    """Shapes on one host, the fewest accelerators first; the largest host has `most` of a kind."""
    counts: Iterable[int] = range(1, min(most, MOST_ON_ONE_HOST) + 1)
    if request.count is not None:
        # A count of 0 with stated sizes means what the sizes make.
        counts = [request.count or (request.stated.world if request.stated else 0)]
    for count in counts:
        yield Layout(count, request.stated_split or Split(tensor=count))


def within_ram(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int]
) -> list[int]:
    """Bytes that each accelerator can give where all are taken, with the RAM that goes with them.

    An extended cache takes more RAM the more memory is claimed; with unified memory both come
    from the same bytes. The room is that of the accelerators that would be taken, most first.
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
