"""Probe releases that serve: whether each replica still answers."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

from moorage.adapters.engines.engine_http import ask, metrics_total, read_metrics
from moorage.adapters.hosts.runtime import other_listener
from moorage.adapters.prefect.events import emit_release_event
from moorage.adapters.system.threads import in_thread
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.operations.reconcile.actions import Action
from moorage.operations.reconcile.cluster_state import MOST_MISSED, RepairRecord
from moorage.readiness.answers import judge
from moorage.readiness.protocol import Phase
from moorage.releases.release_row import ReleaseRow
from tasks.context import ledger, settings
from tasks.map_hosts import gather_all
from tasks.start_lease import lease_of
from tasks.verify import api_key, metrics_key

METRICS_SECONDS = 5.0
"""Limit of reading the metrics, and of the health path of an engine that may be busy."""


def probe(action: Action, row: ReleaseRow) -> str:
    """Check whether every replica answers that is not known to be dead, and record the result."""
    alive = tuple(one for one in row.workloads if one.name not in action.dead)
    row = replace(row, workloads=alive)
    record, problems = probe_replicas(row)
    if problems:
        wrong = "; ".join(problems.values())
        return _record_miss(row, record.model_copy(update={"failure": wrong}))
    return record_answer(row, record)


def probe_replicas(row: ReleaseRow) -> tuple[RepairRecord, dict[int, str]]:
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


def record_answer(row: ReleaseRow, record: RepairRecord) -> str:
    """Record that every replica answered; returns a summary."""
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
