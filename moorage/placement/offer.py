"""A host (or several) that could take the replica."""

from __future__ import annotations

from dataclasses import dataclass, field

from moorage.placement.demand import Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.view import HostView


@dataclass(slots=True)
class Part:
    """What one host gives to an offer.

    Attributes:
        view: The host.
        room: Room of the accelerators that would be taken, most first.
    """

    view: HostView
    room: list[int]


@dataclass(slots=True)
class Offer:
    """One way to seat the replica.

    Attributes:
        parts: The hosts; the leader's first.
        kind: The kind of accelerator; None on CPU.
        split: How the model is cut up.
        needed: Bytes that are taken of each accelerator, or of RAM on CPU.
        is_full: Whether the whole context fits.
        score: Out of 100.
        terms: What the score is made of.
    """

    parts: list[Part]
    kind: AcceleratorKind | None
    split: Split
    needed: int
    is_full: bool = True
    score: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        """Bytes that every accelerator can give."""
        return min(part.room[-1] for part in self.parts)
