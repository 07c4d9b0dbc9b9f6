"""Parallel work that may hang in part: progress, deadline and cancellation."""

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from functools import partial
from threading import Event
from typing import TypeVar

from moorage.adapters.system.threads import complete
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds

T = TypeVar("T")
R = TypeVar("R")

AT_FIRST, GROWTH_SECONDS = 4, 0.001
"""First threads of `map_parallel`, and time without an answer after which it starts another.

Threads that need not wait hinder each other: 16 cost a fifth more processor time.
"""


def map_parallel(
    work: Callable[[T], R],
    items: Sequence[T],
    seconds: float,
    on_done: Callable[[], None] = lambda: None,
) -> list[R | Exception]:
    """Apply a function to every item in parallel, in as many daemon threads as necessary.

    If calls return quickly, few threads serve thousands of items; while none returns, another
    thread starts every millisecond.

    Returns:
        Result or error of each item, in order; `TimeoutError` for calls that have not returned
        within `seconds` for all items together, so `work` should have its own time-outs.
    """
    waiting = deque(enumerate(items))
    answers: queue.SimpleQueue[tuple[int, R | Exception]] = queue.SimpleQueue()
    outcome: list[R | Exception] = [TimeoutError() for _ in items]
    apply = partial(_result, contextvars.copy_context(), work)
    serve = partial(_serve, waiting, lambda at, item: answers.put((at, apply(item))))
    _start(serve, min(AT_FIRST, len(items)))
    left, until = len(items), time.monotonic() + seconds
    while left and (remaining := until - time.monotonic()) > 0:
        patience = min(GROWTH_SECONDS, remaining) if waiting else remaining
        try:
            at, answer = answers.get(timeout=patience)
        except queue.Empty:
            _start(serve, min(1, len(waiting)))  # the running calls may hang
            continue
        outcome[at], left = answer, left - 1
        on_done()
    return outcome


def _start(serve: Callable[[], None], count: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=serve, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def _serve(waiting: deque[tuple[R, T]], answer: Callable[[R, T], None]) -> None:
    with suppress(IndexError):  # no item is left
        while True:
            answer(*waiting.popleft())


def _result(context: contextvars.Context, work: Callable[[T], R], item: T) -> R | Exception:
    try:
        return context.copy().run(work, item)
    except Exception as error:
        return error


TICK_SECONDS = 0.5
"""Interval between calls of a tick, which reports progress."""

STOP_SECONDS = 5.0
"""How long to wait for stopped jobs: a read from a silent server may hang."""

Tick = Callable[[], None]


def run_all(
    jobs: Sequence[Callable[[Event], T]], *, workers: int, tick: Tick = lambda: None
) -> list[T]:
    """Run all jobs, several at once; the first error of a job or of the tick stops the others.

    The threads do not keep the process alive, since the caller may be such a thread itself.

    Args:
        jobs: Each gets an event, which is set when the job should stop early.
        tick: Called at least every half second; it may raise.
    """
    stopped = Event()
    calls = [(Future[T](), partial(job, stopped)) for job in jobs]
    waiting, pending = deque(calls), {call for call, _ in calls}
    threads = _start(partial(_serve, waiting, complete), min(workers, len(jobs)))
    try:
        while pending:
            done, pending = wait(pending, TICK_SECONDS, FIRST_EXCEPTION)
            for call in done:
                call.result()
            tick()
    except BaseException:
        stopped.set()
        waiting.clear()
        until = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        raise
    return [call.result() for call, _ in calls]


def deadline(seconds: float | None, what: str) -> Tick:
    """A tick that raises `DOWNLOAD_TIMEOUT` once `seconds` have passed; None = never."""
    start = time.monotonic()

    def check() -> None:
        if seconds is not None and time.monotonic() - start > seconds:
            raise Failure(Cause.DOWNLOAD_TIMEOUT, f"{what} took over {human_seconds(seconds)}")

    return check
