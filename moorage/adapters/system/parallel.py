"""Parallel work, some of which may never end."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_parallel(
    work: Callable[[T], R],
    items: Sequence[T],
    seconds: float,
    on_done: Callable[[], None] = lambda: None,
) -> list[R | Exception]:
    """Apply a function to every item in parallel, in daemon threads.

    Args:
        work: The function; it should have time-outs of its own.
        items: Its arguments.
        seconds: How long to wait for all.
        on_done: Called after each item.

    Returns:
        Result or error of each, in order; `TimeoutError` for those that have not ended.
    """
    answers: queue.Queue[tuple[int, R | Exception]] = queue.Queue()
    outcome: list[R | Exception] = [TimeoutError() for _ in items]

    def run(at: int, item: T) -> None:
        try:
            answers.put((at, work(item)))
        except Exception as error:
            answers.put((at, error))

    until = time.monotonic() + seconds
    for at, item in enumerate(items):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(run, at, item), daemon=True).start()
    for _ in items:
        try:
            at, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        outcome[at] = answer
        on_done()
    return outcome
