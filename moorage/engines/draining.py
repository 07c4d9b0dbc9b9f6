"""Whether an engine has requests in flight, and what became of them before it was stopped."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.units import human_seconds
from moorage.values import Value


class Busy(Value):
    """Where an engine tells what it has in flight.

    Attributes:
        path: HTTP path of its metrics, in Prometheus' text format.
        metrics: Names of those that count requests in flight; they are added up.
        progress: Names of those that only grow while it generates.
    """

    path: str
    metrics: tuple[str, ...]
    progress: tuple[str, ...] = ()


class Drained(Value):
    """How the waiting for requests in flight ended.

    Attributes:
        seconds: How long it took.
        waited: Whether any request was in flight.
        left: Requests that still ran at the end; None = the engine did not tell.
    """

    seconds: float = 0.0
    waited: bool = False
    left: int | None = None

    @property
    def told(self) -> str:
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
        metrics: Names of those that count.

    Returns:
        Their sum; None when none of them is there.
    """
    counts = [_value(line) for line in text.splitlines() if _name(line) in metrics]
    return int(sum(counts)) if counts else None


def _name(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0]


def _value(line: str) -> float:
    """The number behind the labels; label values may hold spaces, a time stamp may follow."""
    return float((line.rpartition("}")[2] or line).split()[0 if "}" in line else 1])
