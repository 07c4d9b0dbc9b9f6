"""Waits for events of other processes, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 600.0
"""Timeout of every wait, far above any real duration; tests do not measure time."""

Found = TypeVar("Found")


def until(
    found: Callable[[], Found | None],
    *,
    unless: Callable[[], object] = lambda: None,
    pause: float = 0.1,
) -> Found:
    """Wait until `found` returns a true value, and return that value.

    Args:
        found: One attempt; a false value means not yet.
        unless: Returns a true value, the reason, once waiting is pointless: the wait then fails.
        pause: Seconds between two attempts.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (it := found()):
        if ended := unless():
            # A process that has just ended may have done it before its end.
            it = found()
            assert it, f"it will not happen any more: {ended}"
            return it
        assert time.monotonic() < deadline, f"it did not happen in {PATIENCE_SECONDS:g} s"
        time.sleep(pause)
    return it
