"""Parallel work, some of which may never end: its progress, deadline and cancellation."""

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

from filelock import BaseFileLock, Timeout

from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds

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
        seconds: How long to wait for all.

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


TICK_SECONDS = 0.5
"""How often the progress is reported."""

Tick = Callable[[], None]


def run_all(jobs: Sequence[Callable[[Event], T]], *, workers: int, tick: Tick) -> list[T]:
    """Run all jobs, several at once. The first that fails, or the tick, ends the others.

    Args:
        jobs: Each gets an event that is set when it is to end early.
        tick: Called at least every half second; it may raise.
    """
    stopped = Event()
    with ThreadPoolExecutor(workers, thread_name_prefix="moorage-source") as pool:
        try:
            futures = [pool.submit(job, stopped) for job in jobs]
            pending = set(futures)
            while pending:
                done, pending = wait(pending, TICK_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                tick()
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


@contextmanager
def hold(lock: BaseFileLock, tick: Tick) -> Iterator[None]:
    """Wait for a lock and hold it; meanwhile tick at least every half second, which may raise."""
    while True:
        try:
            lock.acquire(timeout=TICK_SECONDS)
            break
        except Timeout:
            tick()
    try:
        yield
    finally:
        lock.release()


def deadline(seconds: float | None, what: str) -> Tick:
    """Make a tick that raises `DOWNLOAD_TIMEOUT` once so many seconds have passed from now."""
    start = time.monotonic()

    def check() -> None:
        if seconds is not None and time.monotonic() - start > seconds:
            raise Failure(Cause.DOWNLOAD_TIMEOUT, f"{what} took over {human_seconds(seconds)}")

    return check
