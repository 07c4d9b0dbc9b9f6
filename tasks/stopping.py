"""Stop releases that serve, once they have no request in flight."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from moorage.adapters.engines.engine_http import metrics_total, read_metrics
from moorage.adapters.system.threads import in_thread, run_shielded, run_uninterrupted
from moorage.common.failures import Failure
from moorage.engines.base import Busy
from moorage.engines.stopping import Drained, Ending
from moorage.engines.workload import Workload
from moorage.releases.ending import ending_of
from moorage.releases.release_row import ASLEEP, ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from tasks.context import ledger, routes
from tasks.journal import tell
from tasks.restart import lease_of
from tasks.workloads import ABORT_SECONDS, stop_all

POLL_SECONDS = 0.25
ASK_SECONDS = 5.0

IDLE_READINGS = 2
"""How often in a row an engine must be found idle: a request may just be on its way through it."""


async def retire(row: ReleaseRow) -> Drained:
    """End a release on purpose, once its requests are done."""
    drained = await close_and_drain(row)
    cause = add_outcome("retired", drained.summary)
    await run_uninterrupted(end_release, row, ReleaseState.STOPPED, cause)
    return drained


async def close_and_drain(row: ReleaseRow, cause: str = "") -> Drained:
    """Send nobody to a release any more, and wait for what it has in flight.

    It answers for a moment longer (`replace.linger_seconds`): a client that has just looked up its
    endpoint has not sent its request yet. When the wait is cancelled, the release goes on serving.
    """
    try:
        await run_uninterrupted(routes().close, row.id, cause)
        if row.release and row.serving:
            await asyncio.sleep(row.release.spec.replace.linger_seconds)
        return await drain(row)
    except BaseException:
        run_shielded(lambda: _reopen(row.id))
        raise


def end_release(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Stop what a release runs, then free what it holds and close it in one step.

    It also drops the lease of a start by reconciling, for which other flows may wait.
    """
    served = row.state in SERVING or row.state == ReleaseState.STOPPING
    grace = ending_of(row).grace_seconds if served else ABORT_SECONDS
    stop_all(row.workloads, grace)
    ledger().releases.end(row.id, to, cause)
    with suppress(Failure):  # a lease that is not given back runs out
        ledger().locks.drop(lease_of(row.id))


def sleep_on(release: str, cause: str) -> None:
    """Undo of a wake: stop what was started, and free the claims. Idempotent."""
    row = ledger().releases.get(release)
    if row.state == ReleaseState.WAKING:
        stop_all(row.workloads, ABORT_SECONDS)
        ledger().releases.end(release, ReleaseState.ASLEEP, f"{ASLEEP}: {cause}")


def add_outcome(cause: str, outcome: str) -> str:
    """A cause, with how it went; an empty outcome adds nothing."""
    return f"{cause}; {outcome}" if outcome else cause


def _reopen(release: str) -> None:
    if ledger().releases.get(release).state == ReleaseState.STOPPING:
        routes().reopen(release, "its stop was cancelled")


async def drain(row: ReleaseRow) -> Drained:
    """Wait until a release has nothing in flight; nobody may be sent to it any more.

    Nothing is stopped here. When this is cancelled, the engines go on serving.
    """
    hurry = threading.Event()
    try:
        how = ending_of(row)
        in_gateways = await in_thread(until_gateways_idle, row.id, how.drain_seconds, hurry.wait)
        drained = await in_thread(until_idle, row.serving, how, hurry.wait)
        return drained if drained.left is not None else in_gateways
    finally:
        hurry.set()


def until_gateways_idle(
    release: str,
    seconds: float,
    pause: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
    count: Callable[[str], int] | None = None,
) -> Drained:
    """Wait until no gateway has a request in flight on a release.

    Args:
        pause: Waits so many seconds; True ends the waiting.
        count: Counts the requests in flight; None = as the gateways report to the ledger.
    """
    began, count = clock(), count or ledger().gateways.draining
    left = count(release)
    if not left:
        return Drained()
    while left and clock() - began < seconds and not pause(POLL_SECONDS):
        left = count(release)
    return Drained(seconds=round(clock() - began, 1), waited=True, left=left)


def until_idle(
    workloads: tuple[Workload, ...],
    how: Ending,
    pause: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
    read: Callable[[str, float], str] = read_metrics,
) -> Drained:
    """Wait for every workload; all of them have the same time, for they drain at once.

    `pause` waits so many seconds; it returns True to end the waiting. `read` reads the metrics at a
    URL, in so many seconds.
    """
    if how.busy is None or not how.drain_seconds or not workloads:
        return Drained()
    began = clock()
    watches = [_DrainWatch(workload, how.busy, read) for workload in workloads]
    for watch in watches:
        while not watch.ended:
            left = began + how.drain_seconds - clock()
            watch.look(max(POLL_SECONDS, min(left, ASK_SECONDS)))
            if watch.ended or left <= 0 or pause(POLL_SECONDS):
                break
    counts = [watch.count for watch in watches if watch.count is not None]
    return Drained(
        seconds=round(clock() - began, 1),
        waited=any(watch.waited for watch in watches),
        left=sum(counts) if counts else None,
    )


class _DrainWatch:
    """What is known of the requests in flight of one workload."""

    def __init__(self, workload: Workload, busy: Busy, read: Callable[[str, float], str]) -> None:
        self.count: int | None = None
        self.waited = self.ended = False
        self._url, self._names, self._read = workload.endpoint + busy.path, busy.in_flight, read
        self._name, self._idle, self._silent = workload.name, 0, False

    def look(self, timeout: float) -> None:
        """Read once. An engine that has ended has nothing in flight; a slow one may have."""
        try:
            self.count = metrics_total(self._read(self._url, timeout), self._names)
        except TimeoutError:
            if not self._silent:
                tell(f"{self._name} does not answer; it is stopped when its time to drain is over")
            self._idle, self._silent = 0, True
            return
        except ConnectionError:
            self.count = 0
            self.ended = True
            return
        self._idle = 0 if self.count else self._idle + 1
        self.waited = self.waited or bool(self.count)
        self.ended = self.count is None or self._idle >= IDLE_READINGS
