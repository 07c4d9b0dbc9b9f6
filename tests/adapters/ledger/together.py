"""Running something in several processes that begin at the same moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

R = TypeVar("R")
WAIT_SECONDS = 60

_barrier: Barrier


def together(count: int, work: Callable[..., R], *args: Any) -> list[R]:
    """Call `work(number, *args)` in so many processes; results in order of the numbers."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count)
    with ProcessPoolExecutor(count, context, initializer=_enter, initargs=(barrier,)) as pool:
        futures = [pool.submit(_begin, work, number, *args) for number in range(count)]
        return [future.result() for future in futures]


def _enter(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _begin(work: Callable[..., R], *args: Any) -> R:
    _barrier.wait(WAIT_SECONDS)
    return work(*args)
