"""Stop releases that serve, once they have no request in flight."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from moorage.adapters.engines.probe import metrics_total, read_metrics
from moorage.common.failures import Cause, Failure
from moorage.engines.draining import Busy, Drained
from moorage.engines.launch import Workload
from moorage.engines.stopping import Ending
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.releases.states import FINAL, SERVING
from tasks.cleanup import ENDING, SUPERSEDED, end_release, ending_of
from tasks.context import in_thread, ledger, router, run_shielded, run_uninterrupted
from tasks.journal import Journal, tell
from tasks.launch import stop_all

POLL_SECONDS = 0.25
ASK_SECONDS = 5.0
IDLE_READINGS = 2
"""How often in a row an engine must be found idle: a request may just be on its way through it."""


async def retire(row: ReleaseRow) -> Drained:
    """End a release on purpose, once its requests are done."""
    drained = await _close(row)
    cause = _and("retired", drained.summary)
    await run_uninterrupted(end_release, row, ReleaseState.STOPPED, cause)
    return drained


async def stop_for(old: ReleaseRow, release: str) -> None:
    """Stop a release before its successor starts.

    Raises:
        Failure: `LOST_LOCK` when the successor was given up: then the old one serves on.
    """
    await in_thread(_must_be_wanted, release)
    cause = f"{SUPERSEDED} {release}, stopped first"
    drained = await _close(old, cause)
    if drained.summary:
        tell(f"{old.id}: {drained.summary}")
    await run_uninterrupted(_stop_all, old, _and(cause, drained.summary))


async def end_superseded(old: ReleaseRow, journal: Journal, linger_seconds: float = 0) -> None:
    """End a release whose successor serves; that it does not stop is no reason to fail.

    A signal ends the waiting for its requests, but does not leave it half ended.

    Args:
        old: The release.
        journal: Is told what became of it.
        linger_seconds: How long it still answers those who looked its endpoint up before the
            switch, and have not sent their request yet.
    """
    drained = Drained()
    try:
        with suppress(Failure):
            # What stopped first has no workload any more, and another may answer on its port.
            row = await in_thread(ledger().releases.get, old.id)
            if row.workloads:
                await asyncio.sleep(linger_seconds)
            drained = await drain(row)
    finally:
        run_shielded(lambda: _end_superseded(old.id, drained.summary, journal))


def finish_switch(old: ReleaseRow, release: str, journal: Journal) -> None:
    """Undo of the switch, which is one transaction: once made it stays, and the old one ends."""
    if ledger().releases.get(release).state not in SERVING:
        return
    if ledger().releases.get(old.id).state == ReleaseState.STOPPING:
        _end_superseded(old.id, "", journal)


async def _close(row: ReleaseRow, cause: str = "") -> Drained:
    """Send nobody to a release any more, and wait for what it has in flight.

    It answers on for a moment before: whoever has just looked its endpoint up has not sent its
    request yet, so that an engine which is idle then is not done. When the waiting is cancelled the
    release serves on, for nothing was stopped.
    """
    try:
        await run_uninterrupted(router().close, row.id, cause)
        await asyncio.sleep(_linger_seconds(row))
        return await drain(row)
    except BaseException:
        run_shielded(lambda: _reopen(row.id))
        raise


def _linger_seconds(row: ReleaseRow) -> float:
    return row.release.spec.replace.linger_seconds if row.release and row.serving else 0


def _must_be_wanted(release: str) -> None:
    """A flow that stood still for too long must not stop what others count on."""
    state = ledger().releases.get(release).state
    if state in FINAL:
        raise Failure(Cause.LOST_LOCK, f"{release} is {state}, so nothing makes room for it")


def _reopen(release: str) -> None:
    if ledger().releases.get(release).state == ReleaseState.STOPPING:
        router().reopen(release, "its stop was cancelled")


def _stop_all(row: ReleaseRow, cause: str) -> None:
    ledger().releases.explain(row.id, _and(cause, ENDING))
    stop_all(row.workloads, ending_of(row).grace_seconds)
    ledger().releases.explain(row.id, cause)


def _end_superseded(release: str, outcome: str, journal: Journal) -> None:
    try:
        row = ledger().releases.get(release)
        end_release(row, ReleaseState.SUPERSEDED, _and(row.cause, outcome))
    except Failure as failure:
        journal.tell(f"{release} could not be stopped: {failure}")
    else:
        if outcome:
            journal.tell(f"{release}: {outcome}")


def _and(cause: str, outcome: str) -> str:
    return f"{cause}; {outcome}" if outcome else cause


class Pause(Protocol):
    """What ends the waiting early: a `threading.Event`, or the clock of a test."""

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds, or until it is set; whether it is."""
        ...


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
    counts = [watch.count for watch in watches if watch.count is not None]
    return Drained(
        seconds=round(clock() - began, 1),
        waited=any(watch.waited for watch in watches),
        left=sum(counts) if counts else None,
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
            self.count = metrics_total(self._read(self._url, timeout), self._names)
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
