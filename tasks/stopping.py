"""Stop serving releases once they have no requests in flight."""

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
from tasks.start_lease import lease_of
from tasks.verify import metrics_key
from tasks.workloads import ABORT_SECONDS, stop_all

POLL_SECONDS = 0.25
ASK_SECONDS = 5.0

IDLE_READINGS = 2
"""Idle readings in a row after which an engine is idle; a request may be between two stages."""


async def retire(row: ReleaseRow) -> Drained:
    """Stop a release for its retirement, once its requests are done."""
    drained = await close_and_drain(row)
    cause = add_outcome("retired", drained.summary)
    await run_uninterrupted(end_drained, row, ReleaseState.STOPPED, cause)
    return drained


async def close_and_drain(row: ReleaseRow, cause: str = "") -> Drained:
    """Remove a release from the routes and wait for its requests in flight.

    It keeps answering for `replace.linger_seconds`, for clients that have looked up its endpoint
    and not yet sent their request. If the wait is cancelled, the release is routed again.
    """
    try:
        await run_uninterrupted(routes().close, row.id, cause)
        if row.release and row.serving:
            await asyncio.sleep(row.release.spec.replace.linger_seconds)
        return await drain(row)
    except BaseException:
        run_shielded(lambda: _reopen(row.id))
        raise


def end_drained(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """End a release that gets no more requests; if it does not stop, the run says what remains."""
    try:
        end_release(row, to, cause)
    except Failure:
        tell(
            f"{row.id} stays `stopping`: it gets no requests and keeps its claims. Once its host"
            " answers, the same command or `moorage reconcile` stops it."
        )
        raise


def end_release(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Stop a release's workloads, then free its claims and close it in one transaction.

    Also drops the lease of a restart by reconciling, for which other flows may wait.
    """
    served = row.state in SERVING or row.state == ReleaseState.STOPPING
    grace = ending_of(row).grace_seconds if served else ABORT_SECONDS
    stop_all(row.workloads, grace)
    ledger().releases.end(row.id, to, cause)
    with suppress(Failure):  # a lease that is not dropped expires
        ledger().locks.drop(lease_of(row.id))


def sleep_on(release: str, cause: str) -> None:
    """Undo of a wake: stop the started workloads and free the claims. Idempotent."""
    row = ledger().releases.get(release)
    if row.state == ReleaseState.WAKING:
        stop_all(row.workloads, ABORT_SECONDS)
        ledger().releases.end(release, ReleaseState.ASLEEP, f"{ASLEEP}: {cause}")


def add_outcome(cause: str, outcome: str) -> str:
    """A cause with its outcome, or only the cause if the outcome is empty."""
    return f"{cause}; {outcome}" if outcome else cause


def _reopen(release: str) -> None:
    if ledger().releases.get(release).state == ReleaseState.STOPPING:
        routes().reopen(release, "its stop was cancelled")


async def drain(row: ReleaseRow) -> Drained:
    """Wait until a release has no requests in flight; it must be out of the routes.

    Stops nothing: when the wait is cancelled, the engines keep serving.
    """
    hurry = threading.Event()
    try:
        how = ending_of(row)
        in_gateways = await in_thread(until_gateways_idle, row.id, how.drain_seconds, hurry.wait)
        key = await in_thread(_key_of, row)
        drained = await in_thread(until_idle, row.serving, how, hurry.wait, key)
        return drained if drained.left is not None else in_gateways
    finally:
        hurry.set()


Pause = Callable[[float], bool]
"""Waits the given seconds; returns True to end the waiting."""


def until_gateways_idle(release: str, seconds: float, pause: Pause) -> Drained:
    """Wait until no gateway has a request in flight on a release, as they tell the ledger."""
    began, count = time.monotonic(), ledger().gateways.draining
    left = count(release)
    if not left:
        return Drained()
    while left and time.monotonic() - began < seconds and not pause(POLL_SECONDS):
        left = count(release)
    return Drained(seconds=round(time.monotonic() - began, 1), waited=True, left=left)


def _key_of(row: ReleaseRow) -> str:
    """The key of the release's metrics; empty = none, or this process cannot read it."""
    try:
        return metrics_key(row.plan) if row.plan else ""
    except Failure as failure:
        tell(f"{row.id}: requests in flight are not waited for, its key is missing: {failure}")
        return ""


def until_idle(
    workloads: tuple[Workload, ...], how: Ending, pause: Pause, api_key: str = ""
) -> Drained:
    """Wait until every workload is idle, with one deadline for all: they drain concurrently.

    `api_key` is the one that their metrics require; empty = none.
    """
    if how.busy is None or not how.drain_seconds or not workloads:
        return Drained()
    began = time.monotonic()
    watches = [_DrainWatch(workload, how.busy, api_key) for workload in workloads]
    for watch in watches:
        while not watch.ended:
            left = began + how.drain_seconds - time.monotonic()
            watch.look(max(POLL_SECONDS, min(left, ASK_SECONDS)))
            if watch.ended or left <= 0 or pause(POLL_SECONDS):
                break
    counts = [watch.count for watch in watches if watch.count is not None]
    return Drained(
        seconds=round(time.monotonic() - began, 1),
        waited=any(watch.waited for watch in watches),
        left=sum(counts) if counts else None,
    )


class _DrainWatch:
    """Watches the number of requests in flight of one workload."""

    def __init__(self, workload: Workload, busy: Busy, api_key: str) -> None:
        self.count: int | None = None
        self._key = api_key
        self.waited = self.ended = False
        self._url, self._busy = workload.endpoint + busy.path, busy
        self._name, self._idle, self._silent = workload.name, 0, False

    def look(self, timeout: float) -> None:
        """Read the metrics once. An engine that has ended is idle; a slow one may be busy."""
        try:
            self.count = _in_flight(read_metrics(self._url, timeout, self._key), self._busy)
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


def _in_flight(metrics: str, busy: Busy) -> int | None:
    """Requests in flight; None if the metrics do not tell. A request may be in both counts."""
    names = ((busy.running, busy.waiting), [busy.answering] if busy.answering else [])
    counts = (metrics_total(metrics, those) for those in names if those)
    return max((count for count in counts if count is not None), default=None)
