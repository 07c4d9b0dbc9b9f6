"""When a model that failed to wake is tried again, and what callers are told until then."""

from typing import NamedTuple

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 300.0


class FailedWake(NamedTuple):
    """Wakes of a model that failed in a row.

    Attributes:
        reason: Why the last one failed.
        number: How many did.
        at: When the last one ended, in seconds of a monotonic clock.
    """

    reason: str
    number: int
    at: float

    def wait_seconds(self, now: float) -> float:
        """How long nobody tries again: 5 s after the first failure, twice as long after each more.

        Args:
            now: Seconds of the same clock.
        """
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** (self.number - 1), LONGEST_PAUSE_SECONDS)
        return max(0.0, self.at + pause - now)


def next_failure(before: FailedWake | None, reason: str, now: float) -> FailedWake:
    """The record after one more failure."""
    return FailedWake(reason, before.number + 1 if before else 1, now)
