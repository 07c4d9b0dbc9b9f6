"""Showing how far something is that asks many hosts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

QUIET_SECONDS = 2.0
"""What takes no longer needs no progress."""


@contextlib.contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, once it takes a while; gives what is called for each that is done.

    Args:
        console: Where to; nothing appears where it is no terminal.
        what: What is counted.
        total: How many there are.
    """
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = progress.add_task(what, total=total)
    timer = threading.Timer(QUIET_SECONDS, progress.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield lambda: progress.advance(task)
    finally:
        timer.cancel()
        if progress.live.is_started:
            progress.stop()
