"""Ending releases: on purpose, after a failure, and what a killed flow left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.probe import ask
from moorage.adapters.runtime import runtime_for
from moorage.engines.turns import in_turns
from moorage.failures import Cause, Failure
from moorage.launch import LABEL_REPLICA, ContainerSpec, LaunchPlan, Workload, planned_workload
from moorage.readiness.protocol import Phase, Probe
from moorage.release import ReleaseRow, ReleaseState
from moorage.spec import Deadlines
from moorage.states import SERVING, UNFINISHED
from tasks.context import in_thread, ledger, router, settings
from tasks.drain import ending_of
from tasks.image import have_again
from tasks.joining import must_listen
from tasks.journal import Journal
from tasks.launch import ABORT_SECONDS, start, stop_all
from tasks.life import claims_of

COME_UP_SECONDS = 60.0
"""How long reconciling waits for a release that it started again: others wait for it meanwhile."""

POLL_SECONDS = 0.5

SUPERSEDED = "superseded by"
"""How the cause of a release begins that stops for its successor (`tasks/stopping.py`)."""

ENDING = "its engines were told to end"
"""How the cause goes on while they are stopped: one that still runs may be about to end."""


@asynccontextmanager
async def sole_flow(model: str, flow_run_id: str, journal: Journal) -> AsyncIterator[None]:
    """Be the only flow that works on a model name, and start from a clean state.

    What killed flows left behind is cleaned up first: of this model, and of any other model that
    nobody works on, for it may hold the memory that this one needs.
    """
    holding = ledger().locks.holding(
        model,
        wait_seconds=settings().lock_wait_seconds,
        note=f"flow run {flow_run_id}",
        on_wait=lambda held: journal.tell(f"waits: {held}"),
    )
    await in_thread(holding.__enter__)
    try:
        await in_thread(_recover_all, model, journal)
        yield
    finally:
        await in_thread(holding.__exit__, None, None, None)


def end_release(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Stop what a release runs, then free what it holds and close it in one step."""
    served = row.state in SERVING or row.state == ReleaseState.STOPPING
    grace = ending_of(row).grace_seconds if served else ABORT_SECONDS
    stop_all(row.workloads, grace)
    ledger().releases.end(row.id, to, cause)


def abandon(release: str) -> None:
    """Undo of a launch: stop whatever a release that never was ready has started.

    It is given up first, so that it cannot take over any more; one that has taken over stays.
    """
    if not ledger().releases.give_up(release, Cause.INTERRUPTED):
        return
    stop_all(ledger().releases.get(release).workloads, ABORT_SECONDS)


def free_claims(release: str, old: ReleaseRow | None) -> None:
    """Undo of a claim; a release that had to make room gets its own back.

    What runs, or could not be stopped, keeps its claims.
    """
    row = ledger().releases.get(release)
    if row.state in SERVING:
        return
    if row.workloads:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{release} may still run and keeps its claims")
    ledger().claims.hand_back(release, *claims_of(old))


def replaceable(old: ReleaseRow | None) -> str:
    """The release that may be stopped first: only one that could be started again."""
    return old.id if old and old.release and old.release.plan else ""


def start_again(
    row: ReleaseRow, successor: str, *, spare: bool = True, seconds: float | None = None
) -> None:
    """Undo of a stop-first: the old release serves again, exactly as it was planned.

    Args:
        row: The old release.
        successor: The release for which it stopped.
        spare: Leave replicas alone that were not stopped yet; what was told to end must not be.
        seconds: How long to wait until it answers; None = as long as its spec lets it load.
    """
    if ledger().releases.get(successor).state in SERVING:
        return
    if ledger().releases.get(row.id).state in SERVING:
        return  # it was never stopped
    plan = plan_of(row)
    down = _what_is_down(plan) if spare else plan
    if row.release and down.containers:
        have_again(row.release)
    wait = _load_seconds(row) if seconds is None else seconds
    for part in in_turns(down):
        for workload in start_part(row, part):
            _must_come_up(workload, row, wait)
    if ledger().releases.get(row.id).state == ReleaseState.STOPPING:
        router().reopen(row.id, "its successor failed")


def successor_of(row: ReleaseRow) -> str:
    """The release for which one stops; empty where it is stopped for none."""
    if row.state != ReleaseState.STOPPING or not row.cause.startswith(SUPERSEDED):
        return ""
    return row.cause.removeprefix(SUPERSEDED).split()[0].strip(",;")


def bring_back(row: ReleaseRow) -> None:
    """Start a release again that stopped for one whose flow is gone, and undo that one."""
    successor = successor_of(row)
    abandon(successor)
    free_claims(successor, row)
    start_again(row, successor, spare=ENDING not in row.cause, seconds=COME_UP_SECONDS)


def must_be_clean(model: str) -> None:
    """Nothing of a model may be left behind where nobody could look.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, with what may still run and keeps its claims.
    """
    left = [row for row in _left_behind() if row.model == model]
    places = {f"{one.name} on {one.host}" for row in left for one in row.workloads}
    if left:
        names = ", ".join(sorted(places) or [row.id for row in left])
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{names} could not be cleaned up")


def abandoned() -> list[ReleaseRow]:
    """Releases that a flow which is gone left unfinished, or not wholly undone."""
    return [row for row in _left_behind() if not ledger().locks.is_held(row.model)]


def recover_others(model: str, journal: Journal) -> None:
    """Clean up what killed flows left behind, of every model that nobody works on but this one."""
    for row in _left_behind():
        if row.model == model:
            continue
        with suppress(LockHeld), ledger().locks.holding(row.model, wait_seconds=0):
            try:
                if told := recover(ledger().releases.get(row.id)):
                    journal.tell(told)
            except Failure as failure:
                journal.tell(f"could not clean up after {row.id}: {failure}")


def recover(row: ReleaseRow) -> str:
    """Finish or undo what a flow that is gone has left; the model's lock is held by the caller.

    Returns:
        What was done; empty when there was nothing to do.
    """
    if row.state == ReleaseState.STOPPING:
        superseded = row.cause.startswith(SUPERSEDED)
        end_release(row, ReleaseState.SUPERSEDED if superseded else ReleaseState.STOPPED, row.cause)
    elif row.state in UNFINISHED or row.state == ReleaseState.ERROR:
        abandon(row.id)
        ledger().claims.free(row.id)
        _return_claims(row.model)
    else:
        return ""
    return f"cleaned up after {row.id}, whose flow was interrupted while it was {row.state}"


def plan_of(row: ReleaseRow) -> LaunchPlan:
    """What a release starts.

    Raises:
        Failure: `UNKNOWN_RELEASE` when its record does not tell.
    """
    if row.release is None or row.release.plan is None:
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} has no plan to start again from")
    return row.release.plan


def start_part(row: ReleaseRow, part: LaunchPlan) -> list[Workload]:
    """Start the containers of a part of a plan as they were, what others await first."""
    ordered = sorted(part.containers, key=lambda spec: bool(spec.awaits))
    return [_started_again(row, part, spec) for spec in ordered]


def _started_again(row: ReleaseRow, part: LaunchPlan, spec: ContainerSpec) -> Workload:
    if spec.awaits:
        first = next(other for other in part.containers if other.name == spec.awaits)
        must_listen(first, part.engine)
    return start(row.id, spec)


def _what_is_down(plan: LaunchPlan) -> LaunchPlan:
    """The replicas of a plan of which not everything runs."""
    down = {spec.labels[LABEL_REPLICA] for spec in plan.containers if not _runs(spec)}
    left = (spec for spec in plan.containers if spec.labels[LABEL_REPLICA] in down)
    return plan.model_copy(update={"containers": tuple(left)})


def _runs(spec: ContainerSpec) -> bool:
    seen = runtime_for(spec.runtime, spec.address, settings()).observe(planned_workload(spec))
    return seen.running and not seen.restarts


def _load_seconds(row: ReleaseRow) -> float:
    deadlines = row.release.spec.readiness.deadlines if row.release else Deadlines()
    return float(deadlines.load_seconds)


def _must_come_up(workload: Workload, row: ReleaseRow, seconds: float) -> None:
    """Wait until a workload that was started again is healthy; one that ends is a failure.

    What takes longer is not given up: reconciling asks it, and starts it again where it must.
    """
    path = row.release.spec.readiness.probe.path if row.release else "/health"
    probe = Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path)
    runtime = runtime_for(workload.runtime, workload.address, settings())
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        seen = runtime.observe(workload)
        if not seen.running or seen.restarts:
            raise Failure(Cause.ENGINE_EXITED, f"{workload.name}: {seen.detail}")
        if seen.ready or not workload.serves:
            return
        asked = seen.ready is None and asyncio.run(ask(workload.endpoint, probe, POLL_SECONDS))
        if asked and asked[0] == 200:
            return
        time.sleep(POLL_SECONDS)


def _recover_all(model: str, journal: Journal) -> None:
    for row in _left_behind():
        if row.model == model:
            _recover_if_reached(row, journal)
    recover_others(model, journal)


def _recover_if_reached(row: ReleaseRow, journal: Journal) -> None:
    """What a lost host holds stays written down and claimed; it does not keep the model away."""
    try:
        if told := recover(row):
            journal.tell(told)
    except Failure as failure:
        if failure.cause is not Cause.RUNTIME_UNAVAILABLE:
            raise
        journal.tell(f"could not clean up after {row.id}: {failure}")


def _left_behind() -> list[ReleaseRow]:
    """Releases that are not finished, or not wholly undone; their flows may be at work."""
    return [*ledger().releases.unfinished(), *ledger().releases.not_undone()]


def _return_claims(model: str) -> None:
    """A stop-first successor may have taken the claims of a release that still runs."""
    release, claims = claims_of(ledger().releases.running(model))
    if release:
        ledger().claims.hand_back(release, release, claims)
