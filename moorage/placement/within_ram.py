"""What accelerators can give when the RAM that goes with them has to be there too."""

from __future__ import annotations

from moorage.common.refusal import Reason
from moorage.inventory.claims import Resource
from moorage.memory.numbers import largest
from moorage.placement.fit import holders
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.request import Request
from moorage.placement.verdict import Verdict
from moorage.placement.view import HostView


def within_ram(
    request: Request, view: HostView, kind: AcceleratorKind, room: list[int]
) -> list[int]:
    """What each accelerator can give when all of these, and RAM beside them, are taken together.

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
        needed = request.ram_beside(kind, claimed) + (claimed if unified else 0)
        return needed <= view.room.ram

    if fits(room[0]):
        return room
    each = largest(fits, room[0]) if fits(1) else 0
    return [min(left, each) for left in room]


def short_of_ram(request: Request, view: HostView, kind: AcceleratorKind, claimed: int) -> Verdict:
    """The refusal of a host whose accelerators would do, for the RAM beside them."""
    return Verdict(
        view.host.name,
        Reason.RAM,
        needed=request.ram_beside(kind, claimed),
        available=view.room.ram,
        held_by=holders(view.host, Resource.RAM),
    )
