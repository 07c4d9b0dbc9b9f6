"""Start a release again, as it was planned, that stopped first for one that failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from moorage.adapters.engines.probe import ask
from moorage.adapters.hosts.runtime import runtime_for
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.engines.launch import (
    LABEL_REPLICA,
    ContainerSpec,
    LaunchPlan,
    Workload,
    planned_workload,
)
from moorage.engines.start_order import start_groups
from moorage.readiness.protocol import Phase, Probe
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.releases.states import SERVING
from moorage.spec import Deadlines
from tasks.cleanup import ENDING, abandon, free_claims, successor_of
from tasks.context import ledger, router, settings
from tasks.image import restore_image
from tasks.journal import tell
from tasks.launch import ABORT_SECONDS, must_listen, start, stop_all

COME_UP_SECONDS = 60.0
"""How long reconciling waits for a release that it started again: others wait for it meanwhile."""

POLL_SECONDS = 0.5


def undo_stop(
    row: ReleaseRow, successor: str, *, spare: bool = True, seconds: float | None = None
) -> None:
    """Undo of a stop-first: the old release serves again, exactly as it was planned.

    A replica that does not come up keeps no other from serving: reconciling sees to it.

    Args:
        row: The old release.
        successor: The release for which it stopped.
        spare: Leave replicas alone that were not stopped yet; what was told to end must not be.
        seconds: How long to wait until it answers; None = as long as its spec lets it load.

    Raises:
        Failure: When no replica could be started.
    """
    if ledger().releases.get(successor).state in SERVING:
        return
    if ledger().releases.get(row.id).state in SERVING:
        return  # it was never stopped
    plan = plan_of(row)
    down = _what_is_down(plan) if spare else plan
    if row.release and down.containers:
        restore_image(row.release)
    wait = _load_seconds(row) if seconds is None else seconds
    if down.containers:
        tell(f"{row.id} is started again; it may take {human_seconds(wait)} to answer")
    failed = _start_replicas(row, down, wait, anew=not spare)
    if failed and failed.keys() == _replicas(plan):
        raise next(iter(failed.values()))
    if ledger().releases.get(row.id).state == ReleaseState.STOPPING:
        lost = (f"replica {replica}: {failure}" for replica, failure in sorted(failed.items()))
        router().reopen(row.id, "; ".join(("its successor failed", *lost)))


def restore_release(row: ReleaseRow) -> None:
    """Start a release again that stopped for one whose flow is gone, and undo that one."""
    successor = successor_of(row)
    try:
        abandon(successor)
        free_claims(successor, row)
    except Failure as failure:
        left = {workload.host for workload in ledger().releases.get(successor).workloads}
        if not left or left & {spec.host for spec in plan_of(row).containers}:
            raise
        tell(f"{successor} keeps its claims: {failure}")  # elsewhere; this one can serve
    undo_stop(row, successor, spare=ENDING not in row.cause, seconds=COME_UP_SECONDS)


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
    return [_start_container(row, part, spec) for spec in ordered]


def _start_container(row: ReleaseRow, part: LaunchPlan, spec: ContainerSpec) -> Workload:
    if spec.awaits:
        first = next(other for other in part.containers if other.name == spec.awaits)
        must_listen(first, part.engine)
    return start(row.id, spec)


def _start_replicas(
    row: ReleaseRow, plan: LaunchPlan, wait: float, *, anew: bool
) -> dict[str, Failure]:
    """Start replicas in their turns, and wait for each; those that failed, and why."""
    failed: dict[str, Failure] = {}
    for part in start_groups(plan):
        started: dict[str, list[Workload]] = {}
        for replica in sorted(_replicas(part)):
            with _collect_failure(failed, replica):
                own = _only(part, {replica})
                if anew:  # a process that was told to end still runs, but not for long
                    stop_all([planned_workload(spec) for spec in own.containers], ABORT_SECONDS)
                started[replica] = start_part(row, own)
        for replica, workloads in started.items():
            with _collect_failure(failed, replica):
                for workload in workloads:
                    _must_come_up(workload, row, wait)
    return failed


@contextmanager
def _collect_failure(failed: dict[str, Failure], replica: str) -> Iterator[None]:
    try:
        yield
    except Failure as failure:
        failed[replica] = failure


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
        answer = seen.ready is None and asyncio.run(ask(workload.endpoint, probe, POLL_SECONDS))
        if answer and answer[0] == 200:
            return
        time.sleep(POLL_SECONDS)


def _what_is_down(plan: LaunchPlan) -> LaunchPlan:
    """The replicas of a plan of which not everything is seen to run."""
    return _only(plan, {spec.labels[LABEL_REPLICA] for spec in plan.containers if not _runs(spec)})


def _runs(spec: ContainerSpec) -> bool:
    runtime = runtime_for(spec.runtime, spec.address, settings())
    with suppress(Failure):
        seen = runtime.observe(planned_workload(spec))
        return seen.running and not seen.restarts
    return False


def _replicas(plan: LaunchPlan) -> set[str]:
    return {spec.labels[LABEL_REPLICA] for spec in plan.containers}


def _only(plan: LaunchPlan, replicas: set[str]) -> LaunchPlan:
    left = (spec for spec in plan.containers if spec.labels[LABEL_REPLICA] in replicas)
    return plan.model_copy(update={"containers": tuple(left)})


def _load_seconds(row: ReleaseRow) -> float:
    deadlines = row.release.spec.readiness.deadlines if row.release else Deadlines()
    return float(deadlines.load_seconds)
