"""Waiting until a release has no request in flight, before it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from moorage.adapters.engines.probe import read_metrics
from moorage.engines.draining import Busy, Drained, requests_in_flight
from moorage.engines.launch import Workload
from moorage.engines.stopping import Ending, ending
from moorage.releases.release import ReleaseRow
from moorage.spec import StoppingSpec
from tasks.context import in_thread

POLL_SECONDS = 0.25
ASK_SECONDS = 5.0
IDLE_READINGS = 2
"""How often in a row an engine must be found idle: a request may just be on its way through it."""


class Pause(Protocol):
    """What ends the waiting early: a `threading.Event`, or the clock of a test."""

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds, or until it is set; whether it is."""
        ...


def ending_of(row: ReleaseRow) -> Ending:
    """How a release is ended, as far as its record tells."""
    if row.release is None:
        return ending(StoppingSpec(), None)
    return ending(row.release.spec.stopping, row.release.plan)


async def drain(row: ReleaseRow) -> Drained:
    """Wait until a release has nothing in flight; nobody may be sent to it any more.

    Nothing is stopped here: when this is cancelled, the waiting ends and the engines serve on.
    """
    hurry = threading.Event()
    try:
        return await in_thread(until_idle, row.serving, ending_of(row), hurry)
    finally:
        hurry.set()


def until_idle(
    workloads: tuple[Workload, ...],
    how: Ending,
    hurry: Pause,
    clock: Callable[[], float] = time.monotonic,
    read: Callable[[str, float], str] = read_metrics,
) -> Drained:
    """Wait for every workload; all of them have the same time, for they drain at once.

    Args:
        workloads: What the release runs.
        how: What tells that an engine is idle, and how long it is waited for.
        hurry: Ends the waiting.
        clock: Seconds that only grow.
        read: Reads the metrics at a URL, in so many seconds.
    """
    if how.busy is None or not how.drain_seconds or not workloads:
        return Drained()
    began = clock()
    watches = [_Watch(workload, how.busy, read) for workload in workloads]
    for watch in watches:
        while not watch.ended:
            left = began + how.drain_seconds - clock()
            watch.look(max(POLL_SECONDS, min(left, ASK_SECONDS)))
            if watch.ended or left <= 0 or hurry.wait(POLL_SECONDS):
                break
    told = [watch.count for watch in watches if watch.count is not None]
    return Drained(
        seconds=round(clock() - began, 1),
        waited=any(watch.waited for watch in watches),
        left=sum(told) if told else None,
    )


class _Watch:
    """What is known of the requests in flight of one workload."""

    def __init__(self, workload: Workload, busy: Busy, read: Callable[[str, float], str]) -> None:
        self.count: int | None = None
        self.waited = self.ended = False
        self._url, self._names, self._read = workload.endpoint + busy.path, busy.metrics, read
        self._idle = 0

    def look(self, timeout: float) -> None:
        """Ask once. An engine that is gone has nothing in flight; one that is slow may have."""
        try:
            self.count = requests_in_flight(self._read(self._url, timeout), self._names)
        except TimeoutError:
            self._idle = 0
            return
        except ConnectionError:
            self.count = 0
            self.ended = True
            return
        self._idle = 0 if self.count else self._idle + 1
        self.waited = self.waited or bool(self.count)
        self.ended = self.count is None or self._idle >= IDLE_READINGS
