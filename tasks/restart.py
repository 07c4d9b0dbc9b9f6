"""A release that died is started again where it was, exactly as it was planned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.ledger.lock_owner import Owner
from moorage.adapters.ledger.transitions import author
from moorage.adapters.prefect.events import emit_release_event
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LABEL_REPLICA, LaunchPlan, Workload
from moorage.engines.start_order import start_groups
from moorage.operations.reconcile.actions import Action
from moorage.operations.reconcile.release_status import not_before
from moorage.releases.release import ReleaseRow, Restart
from moorage.releases.succession import plan_of
from tasks.context import ledger, settings
from tasks.image import restore_image
from tasks.launch import lock_names
from tasks.probing import answers, lease_of
from tasks.workloads import ABORT_SECONDS, start_part, stop


def restart(action: Action, row: ReleaseRow) -> str:
    """Start what died, and nothing else; whether it answers is found out later.

    A load may take many minutes, for which nobody else should have to wait. Its accelerators stay
    taken meanwhile by a lease that ends when it answers, or when it should have.
    """
    replicas = _failed(row, frozenset(action.dead))
    if not replicas:
        return "it runs and answers by now"
    part = _part(plan_of(row), replicas)
    with lease_accelerators(row), count_attempt(row, action.reason):
        ledger().releases.add_restart(row.id, _restart_record(action, replicas))
        for workload in row.workloads:
            if workload.replica in replicas:
                stop(workload, ABORT_SECONDS)
        if row.release:
            restore_image(row.release)
        started = start_part(row, part)
    emit_release_event("restarted", row, action.reason)
    return f"started again: {', '.join(one.name for one in started)}"


@contextmanager
def count_attempt(row: ReleaseRow, reason: str) -> Iterator[None]:
    """Count a start before it is made, so that one that kills its flow counts as well.

    A start that waits for another engine's is not made yet, see `lease_accelerators`.
    """
    own, now = ledger().repairs, datetime.now(UTC)
    attempts = own.of(row.id).attempts + 1
    begun = {
        "attempts": attempts,
        "not_before": not_before(now, attempts),
        "failure": reason,
        "started_at": now,
        "well_since": None,
        "missed": 0,
        "tokens": {},
    }
    own.keep(own.of(row.id).model_copy(update=begun))
    try:
        yield
    except Failure as failure:
        own.keep(own.of(row.id).model_copy(update={"failure": str(failure)}))
        raise


@contextmanager
def lease_accelerators(row: ReleaseRow) -> Iterator[None]:
    """Its accelerators, taken until it answers; given back at once when it cannot be started.

    The lease has no process for an owner: it outlives this one.

    Raises:
        Failure: `ACCELERATOR_STARTING` when another engine starts there.
    """
    release = row.release
    names = lock_names(release.placement if release else None)
    if not names or release is None:
        yield
        return
    deadlines = release.spec.readiness.deadlines
    seconds = float(deadlines.load_seconds + deadlines.warm_up_seconds)
    owner = Owner(machine="", pid=0, started_at=0, note=row.id)
    locks, token = ledger().locks, lease_of(row.id)
    if held := locks.take_all(names, token, owner, seconds):
        name, other = next(iter(held.items()))
        raise Failure(Cause.ACCELERATOR_STARTING, f"{other.note or other.pid} starts on {name}")
    try:
        yield
    except BaseException:
        locks.drop(token)
        raise


def _restart_record(action: Action, replicas: set[int]) -> Restart:
    return Restart(
        at=datetime.now(UTC),
        replicas=tuple(sorted(replicas)),
        reason=action.reason,
        flow_run_id=author().flow_run_id,
    )


def _failed(row: ReleaseRow, dead: frozenset[str]) -> set[int]:
    """Numbers of the replicas that are still dead, or still do not answer."""
    if dead:
        known = {one.name: one for one in row.workloads}
        planned = {spec.name: spec for spec in plan_of(row).containers}
        gone = {name for name in dead & planned.keys() if not _runs(known.get(name))}
        return {int(planned[name].labels[LABEL_REPLICA]) for name in gone}
    wrong = {one.replica: asyncio.run(answers(row, one)) for one in row.serving}
    return {replica for replica, text in wrong.items() if text}


def _runs(workload: Workload | None) -> bool:
    if workload is None:
        return False
    return runtime_for(workload.runtime, workload.address, settings()).observe(workload).running


def _part(plan: LaunchPlan, replicas: set[int]) -> LaunchPlan:
    """What is started now. Of replicas that share an accelerator one is, the next a look later."""
    wanted = [one for one in plan.containers if int(one.labels[LABEL_REPLICA]) in replicas]
    return start_groups(plan.model_copy(update={"containers": tuple(wanted)}))[0]
