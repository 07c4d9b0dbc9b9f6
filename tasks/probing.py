"""Whether a release answers: one token, unless its metrics show that it generates anyway."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime

from moorage.adapters.engines.probe import ask, metrics_total, read_metrics
from moorage.adapters.prefect.events import emit_release_event
from moorage.engines.launch import Workload
from moorage.engines.registry import ENGINES
from moorage.operations.reconcile.actions import Action
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.operations.reconcile.release_status import MOST_MISSED
from moorage.readiness.protocol import judge
from moorage.releases.release import ReleaseRow
from tasks.context import ledger, settings
from tasks.verify import api_key

METRICS_SECONDS = 5.0


def probe(_action: Action, row: ReleaseRow) -> str:
    """Find out whether every replica answers, and keep what was found."""
    record = ledger().repairs.of(row.id)
    tokens = {one.name: _generated(row, one) for one in row.serving}
    wrong = asyncio.run(_wrong(row, [one for one in row.serving if not _grew(one, tokens, record)]))
    found = {
        "probed_at": datetime.now(UTC),
        "tokens": {name: count for name, count in tokens.items() if count is not None},
    }
    if wrong:
        return _missed(row, record.model_copy(update={**found, "failure": wrong}))
    return _well(row, record.model_copy(update=found))


async def answers(row: ReleaseRow, workload: Workload) -> str:
    """Ask one replica for a token, or whatever its mode gives.

    Returns:
        What is wrong; empty when it answers. A refusal is an answer: the engine lives.
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


def lease_of(release: str) -> str:
    """The token under which the accelerators of a release that starts again are taken."""
    return hashlib.sha256(f"restart {release}".encode()).hexdigest()


async def _wrong(row: ReleaseRow, workloads: list[Workload]) -> str:
    wrong = await asyncio.gather(*(answers(row, one) for one in workloads))
    return "; ".join(filter(None, wrong))


def _grew(workload: Workload, tokens: dict[str, int | None], record: RepairRecord) -> bool:
    """Whether it has generated since the last look; one that was just started must be asked."""
    now, before = tokens[workload.name], record.tokens.get(workload.name)
    return not record.started_at and now is not None and before is not None and now > before


def _generated(row: ReleaseRow, workload: Workload) -> int | None:
    """Tokens that an engine has generated, as its metrics count; None when they do not tell."""
    plan = row.release.plan if row.release else None
    busy = ENGINES[plan.engine].busy if plan else None
    if busy is None or not busy.progress:
        return None
    try:
        text = read_metrics(workload.endpoint + busy.path, METRICS_SECONDS)
    except (TimeoutError, ConnectionError):
        return None
    return metrics_total(text, busy.progress)


def _missed(row: ReleaseRow, record: RepairRecord) -> str:
    """One that is starting may yet answer: that has a deadline of its own."""
    if record.started_at:
        ledger().repairs.keep(record)
        return f"not yet: {record.failure}"
    missed = record.missed + 1
    ledger().repairs.keep(record.model_copy(update={"missed": missed}))
    if missed == MOST_MISSED:
        emit_release_event("unresponsive", row, record.failure)
    return f"no answer, {missed} times in a row: {record.failure}"


def _well(row: ReleaseRow, record: RepairRecord) -> str:
    again = record.started_at is not None
    better: dict[str, object] = {
        "started_at": None,
        "missed": 0,
        "failure": record.failure if again else "",
    }
    if again:
        better["well_since"] = datetime.now(UTC)
        ledger().locks.drop(lease_of(row.id))
    ledger().repairs.keep(record.model_copy(update=better))
    if again or record.missed:
        emit_release_event("recovered", row, "it answers again")
    return "it answers again" if again or record.missed else "it answers"
