"""What became of each host, in numbers; the words are made when somebody reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes

MOST_NAMED = 4
"""Releases that are named as holders; the others are counted."""


@dataclass(slots=True, unsafe_hash=True)
class Verdict:
    """What became of one host. Nobody changes it; a frozen one takes ten times as long to make.

    Attributes:
        host: Its name.
        refusal: The named reason, or None when the host could take the model.
        note: The reason in words, where the numbers do not say all.
        needed: What was needed of the scarce resource: bytes, or cores; 0 = it was not about that.
        available: What was available of it; of accelerators, on the one with least room.
        count: Accelerators that were wanted together, 0 = it was not about them.
        there: Accelerators of that kind on the host.
        held_by: Releases that hold some of the resource.
        score: Out of 100, for a host that could take the model.
        points: What the score is made of, in the order of the placement's `terms`.
    """

    host: str
    refusal: Reason | None = None
    note: str = ""
    needed: int = 0
    available: int = 0
    count: int = 0
    there: int = 0
    held_by: tuple[str, ...] = ()
    score: float = 0.0
    points: tuple[float, ...] = ()

    @classmethod
    def of(cls, host: str, refusal: Refusal) -> Verdict:
        """The verdict of a host that is refused."""
        return cls(
            host,
            refusal.reason,
            refusal.note,
            refusal.needed,
            refusal.available,
            refusal.count,
            refusal.there,
            refusal.held_by,
        )

    @property
    def detail(self) -> str:
        """The reason with its numbers, or how the host scored."""
        if self.refusal is None:
            return self._praise()
        words = [part for part in (self._numbers(), self.note) if part]
        if self.held_by:
            more = len(self.held_by) - MOST_NAMED
            names = ", ".join(self.held_by[:MOST_NAMED])
            words.append(f"held by {names}{f' and {more} more' if more > 0 else ''}")
        return "; ".join(words)

    def _praise(self) -> str:
        scored = self.needed or self.score or self.points
        score = f"score {self.score:.1f}" if scored else ""
        words = (self._numbers(), self.note, score)
        return "; ".join(part for part in words if part)

    def _numbers(self) -> str:
        if not self.needed:
            return ""
        if self.refusal == Reason.CORES:
            return f"{self.needed} cores needed, {self.available} available"
        numbers = f"{human_bytes(self.needed)} needed, {human_bytes(self.available)} available"
        if not self.count:
            return f"RAM: {numbers}"
        of = f" (of {self.there})" if self.there else ""
        return f"{numbers} on each of {self.count}{of}"


def count_refusals(verdicts: Iterable[Verdict]) -> dict[Reason, int]:
    """How many hosts were refused for each reason, most first."""
    counts = Counter(verdict.refusal for verdict in verdicts if verdict.refusal)
    return dict(counts.most_common())
