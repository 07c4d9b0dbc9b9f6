"""Requests in flight: where an engine reports them, and how waiting for them ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from moorage.common.units import human_seconds
from moorage.common.values import Value

MOST_LABEL_SETS, MOST_DIGITS, MOST_COUNT = 10_000, 64, 2**53
"""Limits of what is read: ranks of an engine, characters of a number, and its value."""


class Busy(Value):
    """Where an engine reports its requests in flight.

    Attributes:
        path: HTTP path of its metrics, in Prometheus' text format.
        metrics: Names of the metrics that count requests in flight; they are added up.
        progress: Names of the metrics that grow only while it generates.
    """

    path: str
    metrics: tuple[str, ...]
    progress: tuple[str, ...] = ()


class Drained(Value):
    """The result of waiting for requests in flight.

    Attributes:
        seconds: How long it took.
        waited: Whether any request was in flight.
        left: Requests that still ran at the end; None = not known.
    """

    seconds: float = 0.0
    waited: bool = False
    left: int | None = None

    @property
    def summary(self) -> str:
        """One line about it; empty when nothing is known."""
        if self.left is None:
            return ""
        if self.left:
            noun = "request" if self.left == 1 else "requests"
            return f"{self.left} {noun} still in flight after {human_seconds(self.seconds)}"
        if self.waited:
            return f"its last request ended after {human_seconds(self.seconds)}"
        return "no request was in flight"


def requests_in_flight(text: str, metrics: Sequence[str]) -> int | None:
    """Requests that an engine has in flight, over all label sets (one for each of its ranks).

    Args:
        text: Its metrics in Prometheus' text format.
        metrics: Names of the metrics that count.

    Returns:
        Their sum; None when all of them are missing, or one is no count.
    """
    # Label values may hold spaces, and a time stamp may follow. Other lines are not even cut out:
    # there may be millions of them.
    names = "|".join(map(re.escape, metrics))
    lines = re.finditer(rf"^(?:{names})(?:\{{[^\n]*\}})?[ \t]+([^\s{{}}]+)", text, re.MULTILINE)
    counts = [_count(match[1]) for match in islice(lines, MOST_LABEL_SETS)]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _count(text: str) -> int | None:
    """A number as Prometheus writes it; None = no count, such as `NaN`, or too large."""
    try:
        number = float(text[:MOST_DIGITS])
    except ValueError:
        return None
    return int(number) if 0 <= number <= MOST_COUNT else None
