"""Restart dead replicas in their place and as planned."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.ledger.transitions import author
from moorage.adapters.prefect.events import emit_release_event
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LaunchPlan, start_groups
from moorage.operations.reconcile.actions import Action, not_before
from moorage.releases.release import Restart, plan_of
from moorage.releases.release_row import ReleaseRow
from tasks.context import ledger, settings
from tasks.probe import probe_replicas, record_answer
from tasks.restore_image import lacks_image, restore_image
from tasks.start_lease import lease_accelerators
from tasks.workloads import ABORT_SECONDS, require_same_files, start_part, stop


class ImageAbsent(Exception):
    """A host lacks the image that some replicas start from, which `fetch_image` pulls."""

    def __init__(self, replicas: tuple[int, ...]) -> None:
        super().__init__(replicas)
        self.replicas = replicas


def restart(action: Action, row: ReleaseRow) -> str:
    """Restart dead replicas only; later probes find out whether they answer.

    Does not wait for loading, which may take many minutes. A lease reserves the accelerators until
    the release answers or its deadline has passed.

    Raises:
        ImageAbsent: When the image must be pulled first.
    """
    if not action.dead:
        record, problems = probe_replicas(row)
        if not problems:
            return record_answer(row, record)
        return _start_again(row, set(problems), action.reason)
    replicas = _dead_replicas(row, frozenset(action.dead))
    return _start_again(row, replicas, action.reason) if replicas else "it runs by now"


def _start_again(row: ReleaseRow, replicas: set[int], reason: str) -> str:
    # Of replicas that share an accelerator, start one now and the others in later reconciles.
    part = start_groups(plan_of(row).of_replicas(replicas))[0]
    _require_image(row, part, reason)
    record = Restart(
        at=datetime.now(UTC),
        replicas=tuple(sorted(replicas)),
        reason=reason,
        flow_run_id=author().flow_run_id,
    )
    with _event_of_refusal(row), lease_accelerators(row), count_attempt(row, reason):
        require_same_files(row, part)  # before anything is stopped
        ledger().releases.add_restart(row.id, record)
        for workload in row.workloads:
            if workload.replica in replicas:
                stop(workload, ABORT_SECONDS)
        started = start_part(row, part)
    emit_release_event("restarted", row, reason)
    return f"started again: {', '.join(one.name for one in started)}"


def _require_image(row: ReleaseRow, part: LaunchPlan, reason: str) -> None:
    with _count_failure(row, reason):
        if lacks_image(row.release, part):
            raise ImageAbsent(tuple(sorted({spec.replica for spec in part.containers})))


def fetch_image(action: Action, replicas: Collection[int]) -> str:
    """Pull the image that the restart of some replicas lacks; a failure counts as an attempt.

    Call it without the locks of model and fleet: a pull may take half an hour. `LockHeld` when
    another reconcile pulls it.
    """
    row = ledger().releases.get(action.release)
    if row.state != action.state:
        return f"it is {row.state} by now"
    note = f"the pull of {row.id}'s image"
    with (
        ledger().locks.holding(f"image:{row.model}", wait_seconds=0, note=note),
        _count_failure(row, action.reason),
    ):
        restore_image(row.release, plan_of(row).of_replicas(replicas))
    return "its image is there again"


@contextmanager
def _count_failure(row: ReleaseRow, reason: str) -> Iterator[None]:
    """Count a failure before a start as an attempt."""
    try:
        yield
    except Failure:
        with count_attempt(row, reason):
            raise


@contextmanager
def _event_of_refusal(row: ReleaseRow) -> Iterator[None]:
    """Emit an event when its files have changed; once, although it is tried again and again."""
    before = ledger().repairs.of(row.id).failure
    try:
        yield
    except Failure as failure:
        if failure.cause is Cause.SOURCE_MISSING and str(failure) != before:
            emit_release_event("refused", row, str(failure))
        raise


@contextmanager
def count_attempt(row: ReleaseRow, reason: str) -> Iterator[None]:
    """Count a start before it is made, so that a start that kills its flow counts, too.

    A start that another engine delays does not count, since `lease_accelerators` raises first.
    """
    own, now = ledger().repairs, datetime.now(UTC)
    record = own.of(row.id)
    begun = {
        "attempts": record.attempts + 1,
        "not_before": not_before(now, record.attempts + 1),
        "failure": reason,
        "started_at": now,
        "well_since": None,
        "missed": 0,
        "tokens": {},
    }
    own.keep(record.model_copy(update=begun))
    try:
        yield
    except Failure as failure:
        own.keep(own.of(row.id).model_copy(update={"failure": str(failure)}))
        raise


def _dead_replicas(row: ReleaseRow, dead: frozenset[str]) -> set[int]:
    """Numbers of the replicas of which a workload is still dead."""
    known = [one for one in row.workloads if one.name in dead]
    running = (one for one in known if runtime_for(one, settings()).observe(one).running)
    missing = dead - {one.name for one in running}
    return {spec.replica for spec in plan_of(row).containers if spec.name in missing}
