"""Probe releases that serve, and restart dead replicas in their place and as planned."""

import asyncio
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from moorage.adapters.engines.engine_http import ask, metrics_total, read_metrics
from moorage.adapters.hosts.runtime import other_listener, runtime_for
from moorage.adapters.ledger.locks import LEASE_SECONDS, RENEW_SECONDS, Owner
from moorage.adapters.ledger.transitions import author
from moorage.adapters.prefect.events import emit_release_event
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LaunchPlan, start_groups
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.operations.reconcile.actions import Action, not_before
from moorage.operations.reconcile.cluster_state import MOST_MISSED, RepairRecord
from moorage.placement.placement import Placement
from moorage.readiness.answers import judge
from moorage.readiness.protocol import Phase
from moorage.releases.release import Restart, plan_of
from moorage.releases.release_row import ReleaseRow
from tasks.context import ledger, settings
from tasks.image import lacks_image, restore_image
from tasks.map_hosts import gather_all
from tasks.verify import api_key, metrics_key
from tasks.workloads import ABORT_SECONDS, require_same_files, start_part, stop

METRICS_SECONDS = 5.0
"""Limit of reading the metrics, and of the health path of an engine that may be busy."""

START_LEASE_SECONDS = LEASE_SECONDS + 2 * RENEW_SECONDS
"""Lease of a start lock: longer than that of the model's lock, which the holder took earlier. A
flow that takes over the start lock finds the model unlocked and stops the killed flow's start."""


class ImageAbsent(Exception):
    """A host lacks the image of a release, which `fetch_image` pulls."""


def restart(action: Action, row: ReleaseRow) -> str:
    """Restart dead replicas only; later probes find out whether they answer.

    Does not wait for loading, which may take many minutes. A lease reserves the accelerators until
    the release answers or its deadline has passed.

    Raises:
        ImageAbsent: When the image must be pulled first.
    """
    if not action.dead:
        record, problems = _probe_replicas(row)
        if not problems:
            return _record_answer(row, record)
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
            raise ImageAbsent


def fetch_image(action: Action) -> str:
    """Pull the image that a restart lacks; a failure counts as an attempt.

    Call it without the locks of model and fleet: a pull may take half an hour. `LockHeld` when
    another reconcile pulls it.
    """
    row = ledger().releases.get(action.release)
    specs = plan_of(row).containers
    replicas = {spec.replica for spec in specs if not action.dead or spec.name in action.dead}
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


@contextmanager
def lease_accelerators(row: ReleaseRow) -> Iterator[None]:
    """Lease the release's accelerators until it answers; an error in the block drops the lease.

    No process owns the lease, so it outlives this process. Raises `ACCELERATOR_STARTING` when
    another engine starts on one of them.
    """
    release = row.release
    names = lock_names(row.placement)
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


def lease_of(release: str) -> str:
    """The lock token of a restart, with which it leases the accelerators of its release."""
    return hashlib.sha256(f"restart {release}".encode()).hexdigest()


def lock_names(*placements: Placement | None) -> tuple[str, ...]:
    """Names of the start locks of each accelerator of the placements."""
    names = {
        f"start:{seat.host}:{seat.accelerator_type}:{one}"
        for placement in placements
        if placement
        for seat in placement.seats
        # Also by UUID: a driver may have given the indexes anew since.
        for one in (*seat.accelerators, *seat.devices)
    }
    return tuple(sorted(names))


def probe(action: Action, row: ReleaseRow) -> str:
    """Check whether every replica answers that is not known to be dead, and record the result."""
    alive = tuple(one for one in row.workloads if one.name not in action.dead)
    row = replace(row, workloads=alive)
    record, problems = _probe_replicas(row)
    if problems:
        wrong = "; ".join(problems.values())
        return _record_miss(row, record.model_copy(update={"failure": wrong}))
    return _record_answer(row, record)


async def answers(row: ReleaseRow, workload: Workload) -> str:
    """Send one replica a minimal request of its mode; returns the problem, empty = it answers.

    An HTTP error below 500 is an answer: the engine is alive.
    """
    problem, _ = await _problem(row, workload)
    return problem


async def _problem(row: ReleaseRow, workload: Workload) -> tuple[str, bool]:
    """The problem of a replica, empty = it answers, and whether it only gave no answer in time."""
    release = row.release
    if release is None or release.plan is None or release.profile is None:
        return "", False
    engine = ENGINES[release.plan.engine]
    question = engine.probes(release.spec, release.profile)[-1]
    key, limit, began = api_key(release.plan), settings().probe_timeout_seconds, time.monotonic()
    status, answer = await ask(workload.endpoint, question, limit, key)
    is_late = not status and time.monotonic() - began >= limit
    if status and status < 500:
        other = await in_thread(other_listener, workload, settings())
        problem = f"{workload.name}: {other} listens at {workload.endpoint} too" if other else ""
        return problem, False
    why = judge(question, status, answer)[0]
    return f"{workload.name}: {question.path or 'connection'}: {why}", is_late


def _dead_replicas(row: ReleaseRow, dead: frozenset[str]) -> set[int]:
    """Numbers of the replicas of which a workload is still dead."""
    known = [one for one in row.workloads if one.name in dead]
    running = (one for one in known if runtime_for(one, settings()).observe(one).running)
    missing = dead - {one.name for one in running}
    return {spec.replica for spec in plan_of(row).containers if spec.name in missing}


def _probe_replicas(row: ReleaseRow) -> tuple[RepairRecord, dict[int, str]]:
    """Probe the replicas that have not generated since the last probe.

    Returns the release's record with this probe, not yet kept, and the problem of each replica that
    does not answer.
    """
    record = ledger().repairs.of(row.id)
    tokens = {one.name: _token_count(row, one) for one in row.serving}
    idle = [one for one in row.serving if not _has_generated(one, tokens, record)]
    found = {
        "probed_at": datetime.now(UTC),
        "tokens": {name: count for name, count in tokens.items() if count is not None},
    }
    probed = asyncio.run(gather_all(*(_probe_one(row, one) for one in idle)))
    silent = [(one, *answer) for one, answer in zip(idle, probed, strict=True) if answer[0]]
    now = int(time.time())
    record = record.with_silent({one.name: may_be_busy for one, _, may_be_busy in silent}, now)
    problems = {
        one.replica: text
        for one, text, may_be_busy in silent
        if not (may_be_busy and record.is_patient(one.name, now))
    }
    return record.model_copy(update=found), problems


async def _probe_one(row: ReleaseRow, workload: Workload) -> tuple[str, bool]:
    """The problem of a replica, empty = it answers, and whether it may only be busy."""
    problem, is_late = await _problem(row, workload)
    return problem, is_late and await _is_well(row, workload)


async def _is_well(row: ReleaseRow, workload: Workload) -> bool:
    """Whether an engine that counts no tokens before a request ends answers on its health path.

    False for one that counts them at each step: it has counted none, so it is stuck, not busy.
    """
    release = row.release
    if not (release and release.plan and release.profile):
        return False
    engine = ENGINES[release.plan.engine]
    if engine.busy and engine.busy.generated:
        return False
    probes = engine.probes(release.spec, release.profile)
    health = next((one for one in probes if one.phase == Phase.HEALTHY), None)
    if health is None:
        return False
    status, _ = await ask(workload.endpoint, health, METRICS_SECONDS, api_key(release.plan))
    return status == 200


def _has_generated(workload: Workload, tokens: dict[str, int | None], record: RepairRecord) -> bool:
    """Whether it has generated tokens since the last probe; never for one that was just started."""
    now, before = tokens[workload.name], record.tokens.get(workload.name)
    return not record.started_at and now is not None and before is not None and now > before


def _token_count(row: ReleaseRow, workload: Workload) -> int | None:
    """Tokens that an engine has generated, from its metrics; None without such metrics."""
    busy = ENGINES[row.plan.engine].busy if row.plan else None
    if busy is None or not busy.progress:
        return None
    key = metrics_key(row.plan) if row.plan else ""
    try:
        text = read_metrics(workload.endpoint + busy.path, METRICS_SECONDS, key)
    except (TimeoutError, ConnectionError):
        return None
    return metrics_total(text, busy.progress)


def _record_miss(row: ReleaseRow, record: RepairRecord) -> str:
    """Count a missed answer, except of a starting release, which has its own deadline."""
    if record.started_at:
        ledger().repairs.keep(record)
        return f"not yet: {record.failure}"
    missed = record.missed + 1
    ledger().repairs.keep(record.model_copy(update={"missed": missed}))
    if missed == MOST_MISSED:
        emit_release_event("unresponsive", row, record.failure)
    return f"no answer, {missed} times in a row: {record.failure}"


def _record_answer(row: ReleaseRow, record: RepairRecord) -> str:
    better: dict[str, object] = {"started_at": None, "missed": 0}
    if record.started_at:
        better["well_since"] = datetime.now(UTC)
        ledger().locks.drop(lease_of(row.id))
    else:
        better["failure"] = ""
    ledger().repairs.keep(record.model_copy(update=better))
    if not (record.started_at or record.missed):
        return "it answers"
    emit_release_event("recovered", row, "it answers again")
    return "it answers again"
