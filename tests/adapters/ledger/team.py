"""Processes that begin something at the same moment, such as to compete for claims."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.inventory.claims import Claim
from moorage.inventory.snapshot import FleetSnapshot
from tests.builders import REVISION, a_spec

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


def claimed(ledger: Ledger, name: str, wanted: Sequence[Claim], fleet: FleetSnapshot) -> str:
    """Begin a release and claim for it; its id, or nothing when others were faster."""
    release = ledger.releases.begin(a_spec(name=name), REVISION, "")
    try:
        ledger.claims.commit(release, wanted, fleet)
    except Failure as failure:
        if failure.cause is not Cause.CLAIM_CONFLICT:
            raise
        return ""
    return release
