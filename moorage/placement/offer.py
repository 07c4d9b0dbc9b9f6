"""A host, or several, that could take the replica."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.placement.demand import Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.view import HostView


@dataclass(slots=True)
class Offer:
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
class Scored:
    """An offer with its points out of 100, in all and by term."""

    offer: Offer
    points: tuple[float, ...]
    score: float
