"""Replace a release: stop it before or after its successor starts, or restart it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from moorage.adapters.engines.engine_http import ask
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.threads import in_thread, run_shielded, run_uninterrupted
from moorage.common.failures import OUT_OF_REACH, Cause, Failure
from moorage.common.units import human_seconds
from moorage.engines.launch import ContainerSpec, LaunchPlan, planned_workload, start_groups
from moorage.engines.stopping import Drained
from moorage.engines.workload import Workload
from moorage.readiness.protocol import Phase, Probe
from moorage.releases.ending import ending_of
from moorage.releases.release import plan_of
from moorage.releases.release_row import (
    ENDING,
    STOPPED_FIRST,
    SUPERSEDED,
    ReleaseRow,
    claims_of,
    successor_of,
)
from moorage.releases.states import FINAL, SERVING, ReleaseState
from moorage.spec import Deadlines
from tasks.context import ledger, routes, settings
from tasks.journal import tell
from tasks.restore_image import restore_image
from tasks.stopping import add_outcome, close_and_drain, drain, end_release, until_gateways_idle
from tasks.workloads import ABORT_SECONDS, start_part, stop_all

COME_UP_SECONDS = 60.0
"""How long reconciling waits for a release that it restarts; other models wait meanwhile."""

POLL_SECONDS = 0.5


async def stop_for(old: ReleaseRow, release: str) -> None:
    """Stop a release before its successor starts; raises `LOST_LOCK` if that was closed."""
    state = (await in_thread(ledger().releases.get, release)).state
    if state in FINAL:  # a flow that hung must not stop a serving release
        raise Failure(Cause.LOST_LOCK, f"{release} is {state}, so nothing makes room for it")
    cause = f"{SUPERSEDED} {release}, {STOPPED_FIRST}"
    drained = await close_and_drain(old, cause)
    if drained.summary:
        tell(f"{old.id}: {drained.summary}")
    await run_uninterrupted(_stop_workloads, old, release, add_outcome(cause, drained.summary))


def undo_stop(row: ReleaseRow, successor: str, *, seconds: float | None = None) -> bool:
    """Undo of a stop-first: restart the old release exactly as planned.

    Leaves alone the replicas that still run, unless they were signalled to end. If a replica does
    not start, the others serve all the same, and reconciling restarts it; fails if none starts.
    False if no restart is needed: its successor serves, or it was never stopped.

    Args:
        seconds: How long to wait until it answers; None = the load deadline of its spec.
    """
    own, new = (ledger().releases.get(name) for name in (row.id, successor))
    if {own.state, new.state} & SERVING:
        return False
    plan = down = plan_of(row)
    spare = ENDING not in own.cause
    if spare:  # replicas with a container that is not seen running
        down = plan.of_replicas({spec.replica for spec in plan.containers if not _runs(spec)})
    deadlines = row.release.spec.readiness.deadlines if row.release else Deadlines()
    wait = float(deadlines.load_seconds) if seconds is None else seconds
    if down.containers:
        tell(f"{row.id} is started again; it may take {human_seconds(wait)} to answer")
    failed = _start_replicas(row, down, wait, again=not spare)
    if failed and failed.keys() == {spec.replica for spec in plan.containers}:
        raise next(iter(failed.values()))
    if ledger().releases.get(row.id).state == ReleaseState.STOPPING:
        lost = (f"replica {replica}: {failure}" for replica, failure in sorted(failed.items()))
        routes().reopen(row.id, "; ".join(("its successor failed", *lost)))
    return True


async def end_superseded(old: ReleaseRow, linger_seconds: float = 0) -> None:
    """End a release whose successor serves; if it does not stop, that is only reported.

    It lingers for clients that looked up its endpoint before the switch and have not yet sent
    their request. A signal stops the wait for its requests; the release is ended all the same.
    """
    drained = Drained()
    try:
        with suppress(Failure):
            # A release that stopped first has no workload, and another may answer on its port.
            row = await in_thread(ledger().releases.get, old.id)
            if row.workloads:
                await asyncio.sleep(linger_seconds)
            drained = await drain(row)
    except BaseException:
        tell(f"the release that replaces {old.id} has taken over and serves on")
        raise
    finally:
        run_shielded(lambda: _end_superseded(old.id, drained.summary))


def stop_sleeper(model: str) -> ReleaseRow | None:
    """Stop a model's engines that sleep while running, and free their claims except ports.

    Its release remains asleep and is returned; waking starts its engines. An engine that is out of
    reach loses its owner, so that reconciling removes it once its host is back. Idempotent.
    """
    row = ledger().releases.asleep(model)
    if row is None or not row.workloads:
        return row
    try:
        stop_all(row.workloads, ABORT_SECONDS)
    except Failure as failure:
        if failure.cause not in OUT_OF_REACH:
            raise
        tell(f"reconciling removes what is left of {row.id} once its host is back: {failure}")
        for workload in row.workloads:
            ledger().workloads.drop(workload.name)
    ledger().claims.keep_ports(row.id)
    return ledger().releases.get(row.id)


def finish_switch(old: ReleaseRow, release: str) -> bool:
    """Undo of the switch: if it is committed, end the old release; False = nothing was to end."""
    own = ledger().releases
    taken = own.get(release).state in SERVING
    if not taken or own.get(old.id).state != ReleaseState.STOPPING:
        return False
    _end_superseded(old.id, "")
    return True


def abandon(release: str, cause: str = Cause.INTERRUPTED) -> bool:
    """Undo of a launch: close a release that was never ready, and stop all its workloads.

    Closes it first, so that it can no longer take over. Waits for the requests of a canary. A
    failure of the flow is written over `cause`. False if it has taken over; then it keeps serving.
    """
    if ledger().routes.had_share(release):
        routes().share(release, None)
        seconds = ending_of(ledger().releases.get(release)).drain_seconds
        until_gateways_idle(release, seconds, threading.Event().wait)
    if not ledger().releases.give_up(release, cause):
        return False
    stop_all(ledger().releases.get(release).workloads, ABORT_SECONDS)
    return True


def free_claims(release: str, old: ReleaseRow | None) -> bool:
    """Undo of a claim; a release that had to make room (`old`) gets its claims back.

    False if the release has taken over; then it keeps its claims. Raises `RUNTIME_UNAVAILABLE`
    while a workload may still run.
    """
    row = ledger().releases.get(release)
    if row.state in SERVING:
        return False
    if row.workloads:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{release} may still run and keeps its claims")
    ledger().claims.hand_back(release, *claims_of(old))
    return True


def restore_release(row: ReleaseRow) -> None:
    """Undo a successor whose flow was killed, and restart the release that stopped for it."""
    successor = successor_of(row)
    try:
        abandon(successor)
        free_claims(successor, row)
    except Failure as failure:
        left = {workload.host for workload in ledger().releases.get(successor).workloads}
        if not left or left & {spec.host for spec in plan_of(row).containers}:
            raise
        tell(f"{successor} keeps its claims: {failure}")  # on other hosts; this release can serve
    undo_stop(row, successor, seconds=COME_UP_SECONDS)


def _stop_workloads(row: ReleaseRow, successor: str, cause: str) -> None:
    ledger().releases.explain(row.id, add_outcome(cause, ENDING))
    try:
        stop_all(row.workloads, ending_of(row).grace_seconds)
    except Failure as failure:
        left = {one.host for one in ledger().releases.get(row.id).workloads}
        if left & {one.host for one in ledger().claims.all() if one.release == successor}:
            raise
        tell(f"{row.id} is stopped as far as {successor} needs its place: {failure}")
    ledger().releases.explain(row.id, cause)


def _end_superseded(release: str, outcome: str) -> None:
    try:
        row = ledger().releases.get(release)
        end_release(row, ReleaseState.SUPERSEDED, add_outcome(row.cause, outcome))
    except Failure as failure:
        tell(f"{release} could not be stopped: {failure}")
    else:
        if outcome:
            tell(f"{release}: {outcome}")


def _start_replicas(
    row: ReleaseRow, plan: LaunchPlan, wait: float, *, again: bool
) -> dict[int, Failure]:
    """Start replicas in turns and wait for each; returns the failure of each that failed.

    Where one is not healthy after the wait, none starts on its accelerators while it loads: the
    later turns are left to reconciling.
    """
    failed: dict[int, Failure] = {}
    for part in start_groups(plan):
        started: dict[int, list[Workload]] = {}
        for replica in sorted({spec.replica for spec in part.containers}):
            with _collect_failure(failed, replica):
                own = part.of_replicas({replica})
                if again:  # a process that was signalled to end may still run
                    stop_all([planned_workload(spec) for spec in own.containers], ABORT_SECONDS)
                restore_image(row.release, own)
                started[replica] = start_part(row, own)
        loads = False
        for replica, workloads in started.items():
            with _collect_failure(failed, replica):
                for workload in workloads:
                    loads |= not _is_healthy(workload, row, wait)
        if loads:
            break
    return failed


@contextmanager
def _collect_failure(failed: dict[int, Failure], replica: int) -> Iterator[None]:
    try:
        yield
    except Failure as failure:
        failed[replica] = failure


def _is_healthy(workload: Workload, row: ReleaseRow, seconds: float) -> bool:
    """Wait until a restarted workload is healthy; raises `ENGINE_EXITED` if it ends.

    False after the wait: it is left to reconciling, which probes it.
    """
    path = row.release.spec.readiness.probe.path if row.release else "/health"
    probe = Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path)
    runtime = runtime_for(workload, settings())
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        seen = runtime.observe(workload)
        if not seen.running or seen.restarts:
            raise Failure(Cause.ENGINE_EXITED, f"{workload.name}: {seen.detail}")
        if seen.ready or not workload.serves:
            return True
        answer = seen.ready is None and asyncio.run(ask(workload.endpoint, probe, POLL_SECONDS))
        if answer and answer[0] == 200:
            return True
        time.sleep(POLL_SECONDS)
    return False


def _runs(spec: ContainerSpec) -> bool:
    runtime = runtime_for(spec, settings())
    with suppress(Failure):
        seen = runtime.observe(planned_workload(spec))
        return seen.running and not seen.restarts
    return False
