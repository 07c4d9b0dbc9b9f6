"""Probe releases that serve, and start again what died, where it was and as it was planned."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from moorage.adapters.engines.engine_http import ask, metrics_total, read_metrics
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.ledger.transitions import author
from moorage.adapters.prefect.events import emit_release_event
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import start_groups
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.operations.reconcile.actions import Action, not_before
from moorage.operations.reconcile.cluster_state import MOST_MISSED, RepairRecord
from moorage.placement.placement import Placement
from moorage.readiness.answers import judge
from moorage.releases.release import Restart, plan_of
from moorage.releases.release_row import ReleaseRow
from tasks.context import ledger, settings
from tasks.image import restore_image
from tasks.verify import api_key
from tasks.workloads import ABORT_SECONDS, start_part, stop

METRICS_SECONDS = 5.0


def restart(action: Action, row: ReleaseRow) -> str:
    """Start what died, and nothing else; later probes find out whether it answers.

    Loading may take many minutes, and nobody else waits for it. A lease holds its accelerators
    until it answers, or should have answered.
    """
    replicas = _failed_replicas(row, frozenset(action.dead))
    if not replicas:
        return "it runs and answers by now"
    # Of replicas that share an accelerator one is started now, the next one the next time.
    plan = plan_of(row)
    wanted = [one for one in plan.containers if int(one.labels[LABEL_REPLICA]) in replicas]
    part = start_groups(plan.model_copy(update={"containers": tuple(wanted)}))[0]
    record = Restart(
        at=datetime.now(UTC),
        replicas=tuple(sorted(replicas)),
        reason=action.reason,
        flow_run_id=author().flow_run_id,
    )
    with lease_accelerators(row), count_attempt(row, action.reason):
        ledger().releases.add_restart(row.id, record)
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
    """Count a start before it is made, so that a start which kills its flow counts too.

    A start that has to wait for another engine does not count (`lease_accelerators`).
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
    """Lease its accelerators until it answers; the lease ends at once when it cannot be started.

    The lease has no process as its owner, so it outlives this one.

    Raises:
        Failure: `ACCELERATOR_STARTING` when another engine starts there.
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
    """The token under which the accelerators of a release that starts again are taken."""
    return hashlib.sha256(f"restart {release}".encode()).hexdigest()


def lock_names(*placements: Placement | None) -> tuple[str, ...]:
    """One lock for each accelerator on which engines are placed."""
    names = {
        f"start:{seat.host}:{seat.accelerator_type}:{index}"
        for placement in placements
        if placement
        for seat in placement.seats
        for index in seat.accelerators
    }
    return tuple(sorted(names))


def probe(_action: Action, row: ReleaseRow) -> str:
    """Find out whether every replica answers, and keep what was found."""
    record = ledger().repairs.of(row.id)
    tokens = {one.name: _token_count(row, one) for one in row.serving}
    silent = [one for one in row.serving if not _has_generated(one, tokens, record)]
    wrong = "; ".join(filter(None, asyncio.run(_problems(row, silent))))
    found = {
        "probed_at": datetime.now(UTC),
        "tokens": {name: count for name, count in tokens.items() if count is not None},
    }
    if wrong:
        return _record_miss(row, record.model_copy(update={**found, "failure": wrong}))
    return _record_answer(row, record.model_copy(update=found))


async def answers(row: ReleaseRow, workload: Workload) -> str:
    """Ask one replica for a token, or whatever its mode gives; what is wrong, empty for nothing.

    A refusal is an answer: the engine lives.
    """
    release = row.release
    if release is None or release.plan is None or release.profile is None:
        return ""
    engine = ENGINES[release.plan.engine]
    question = engine.probes(release.spec, release.profile)[-1]
    key = api_key(release.plan)
    status, answer = await ask(workload.endpoint, question, settings().probe_timeout_seconds, key)
    if status and status < 500:
        return ""
    return f"{workload.name}: {question.path or 'connection'}: {judge(question, status, answer)[0]}"


def _failed_replicas(row: ReleaseRow, dead: frozenset[str]) -> set[int]:
    """Numbers of the replicas that are still dead, or still do not answer."""
    if dead:
        known = [one for one in row.workloads if one.name in dead]
        running = (one for one in known if runtime_for(one, settings()).observe(one).running)
        missing = dead - {one.name for one in running}
        planned = (spec for spec in plan_of(row).containers if spec.name in missing)
        return {int(spec.labels[LABEL_REPLICA]) for spec in planned}
    wrong = asyncio.run(_problems(row, row.serving))
    return {one.replica for one, text in zip(row.serving, wrong, strict=True) if text}


async def _problems(row: ReleaseRow, workloads: Iterable[Workload]) -> list[str]:
    """What is wrong with each; empty for one that answers."""
    return await asyncio.gather(*(answers(row, one) for one in workloads))


def _has_generated(workload: Workload, tokens: dict[str, int | None], record: RepairRecord) -> bool:
    """Whether it has generated since the last look; one that was just started must be probed."""
    now, before = tokens[workload.name], record.tokens.get(workload.name)
    return not record.started_at and now is not None and before is not None and now > before


def _token_count(row: ReleaseRow, workload: Workload) -> int | None:
    """Tokens that an engine has generated, as its metrics count; None when they do not tell."""
    busy = ENGINES[row.plan.engine].busy if row.plan else None
    if busy is None or not busy.progress:
        return None
    try:
        text = read_metrics(workload.endpoint + busy.path, METRICS_SECONDS)
    except (TimeoutError, ConnectionError):
        return None
    return metrics_total(text, busy.progress)


def _record_miss(row: ReleaseRow, record: RepairRecord) -> str:
    """One that is starting may yet answer: that has a deadline of its own."""
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
