"""Running something in several processes that begin at the same moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

R = TypeVar("R")
PROCESSES = 4
WAIT_SECONDS = 60

_barrier: Barrier


class Team:
    """Processes that start from nothing, as those of flows do, and are kept for the next test."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._processes = processes
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            processes, context, initializer=_enter, initargs=(context.Barrier(processes),)
        )

    def __call__(self, work: Callable[..., R], *args: Any) -> list[R]:
        """Call `work(number, *args)` in each process; the results in order of the numbers."""
        futures = [
            self._pool.submit(_begin, work, number, *args) for number in range(self._processes)
        ]
        return [future.result() for future in futures]

    def end(self) -> None:
        """End the processes."""
        self._pool.shutdown()


def _enter(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _begin(work: Callable[..., R], *args: Any) -> R:
    _barrier.wait(WAIT_SECONDS)
    return work(*args)
