"""Retries while a source cannot be reached, and downloads that resume where they ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before each further attempt."""

T = TypeVar("T")


def with_retries(attempt: Callable[[], T], waits: tuple[float, ...] = WAITS) -> T:
    """Repeat an attempt while the source cannot be reached.

    Args:
        attempt: The request.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
    """
    for wait in waits:
        try:
            return attempt()
        except Failure as failure:
            if failure.cause is not Cause.HUB_UNAVAILABLE:
                raise
            time.sleep(wait)
    return attempt()


def grow(
    append: Callable[[], None],
    file: ModelFile,
    target: Path,
    stopped: Event,
    waits: tuple[float, ...] = WAITS,
) -> None:
    """Append to a file until it is complete.

    Args:
        append: Downloads the next part and appends it.
        file: The file.
        target: Where it grows, and stays when the connection breaks for good.
        stopped: Set when the download is to end early.
        waits: As for `with_retries`; every new byte renews them.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    if target.stat().st_size > file.size:
        target.write_bytes(b"")
    left = iter(waits)
    while (have := target.stat().st_size) < file.size:
        try:
            append()
        except Failure as failure:
            if failure.cause is not Cause.HUB_UNAVAILABLE:
                raise
            if target.stat().st_size > have:
                left = iter(waits)
            if (wait := next(left, None)) is None:
                raise
            stopped.wait(wait)
