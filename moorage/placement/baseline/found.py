"""What one strategy came to."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.common.units import GIB
from moorage.placement.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates of a strategy.

    Attributes:
        candidates: In fleet order; empty = nothing fits this way.
        lines: Why nothing fits, or what is wrong with what does; empty = the strategy did not look.
    """

    candidates: tuple[Candidate, ...] = ()
    lines: tuple[str, ...] = ()


def gib(amount: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{amount / GIB:.2f} GiB"
