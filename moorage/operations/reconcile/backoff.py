"""How long a release that died waits before it is started again."""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
HEALTHY_SECONDS = 300.0
"""How long a release must have answered before its failures are forgotten."""


def delay_seconds(attempts: int) -> float:
    """How long to wait after so many starts in a row: 10 s, 20 s, 40 s, ... 300 s.

    Args:
        attempts: How often it was started again; 0 = never, so nothing is waited for.
    """
    if attempts < 1:
        return 0.0
    # The exponent is bounded: a release may fail for months.
    longest: float = FIRST_SECONDS * 2.0 ** min(attempts - 1, 16)
    return min(longest, LONGEST_SECONDS)


def not_before(now: datetime, attempts: int) -> datetime:
    """The earliest moment of the next start."""
    return now + timedelta(seconds=delay_seconds(attempts))
