"""Progress of work on many hosts: a bar on a terminal, lines elsewhere."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

QUIET_SECONDS = 2.0
"""Shorter work shows no progress."""

LINE_SECONDS = 10.0
"""Interval between two lines."""


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show progress after `QUIET_SECONDS`; yields a function that advances it by one."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task, ended = progress.add_task(what, total=total), threading.Event()

    def show() -> None:
        if ended.wait(QUIET_SECONDS):
            return
        if console.is_terminal:
            progress.start()
            return
        while not ended.is_set():
            done = int(progress.tasks[task].completed)
            console.print(f"{what}: {done} of {total} done", highlight=False)
            ended.wait(LINE_SECONDS)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield lambda: progress.advance(task)
    finally:
        ended.set()
        shower.join()
        if progress.live.is_started:
            progress.stop()
