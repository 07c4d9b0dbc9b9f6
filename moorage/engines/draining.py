"""Requests in flight: where an engine reports them, and how waiting for them ended."""

from __future__ import annotations

from moorage.common.units import human_seconds
from moorage.common.values import Value


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
