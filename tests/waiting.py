"""Waiting for what something else does, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 600.0
"""After this nothing will come any more; how long it takes is no test's business."""

Found = TypeVar("Found")


def until(
    found: Callable[[], Found | None],
    *,
    unless: Callable[[], object] = lambda: None,
    pause: float = 0.1,
) -> Found:
    """Wait until something is found, and return it.

    Args:
        found: Looks once; anything that counts as false is not it yet.
        unless: Says what makes waiting pointless, once it does: the wait fails with it at once.
        pause: Seconds between two looks.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (it := found()):
        if ended := unless():
            # What has just ended may have done it before its end.
            it = found()
            assert it, f"it will not happen any more: {ended}"
            return it
        assert time.monotonic() < deadline, f"it did not happen in {PATIENCE_SECONDS:g} s"
        time.sleep(pause)
    return it
