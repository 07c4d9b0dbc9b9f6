"""Pauses between attempts to wake a model that failed to wake."""

from typing import NamedTuple

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 300.0


class FailedWake(NamedTuple):
    """Consecutive failures to wake a model.

    Attributes:
        at: When the last attempt failed, in seconds of a monotonic clock.
    """

    reason: str
    number: int
    at: float

    def wait_seconds(self, now: float) -> float:
        """Seconds until the next attempt: 5 s, doubled by each further failure up to 300 s."""
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** (self.number - 1), LONGEST_PAUSE_SECONDS)
        return max(0.0, self.at + pause - now)


def next_failure(before: FailedWake | None, reason: str, now: float) -> FailedWake:
    """The record after one more failure."""
    return FailedWake(reason, before.number + 1 if before else 1, now)
