"""What the policy `baseline` weighed before it chose."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.placement.candidate import Candidate


class Considered(Value):
    """The answer of the baseline's rules for the first replica.

    Attributes:
        needed: Bytes of accelerator memory that a replica needs in all, as the rules estimate it.
        candidates: All of the first strategy that found any, in fleet order.
        scores: One for each candidate, 0 to 100.
        messages: Why nothing fits, or what is overcommitted.
    """

    needed: int
    candidates: tuple[Candidate, ...] = ()
    scores: tuple[float, ...] = ()
    messages: tuple[str, ...] = ()
