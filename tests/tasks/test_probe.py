"""Probing tells a busy engine from a dead one, and reads metrics with the engine's key."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from moorage.engines import engine_secrets
from moorage.engines.launch import planned_workload
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName
from tasks import probe, verify
from tasks.context import ledger
from tests.builders import a_profile, a_release, a_row
from tests.tasks.test_replace import PLAN

pytestmark = pytest.mark.usefixtures("own_home")


async def test_an_answer_of_another_program_at_its_port_is_none_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answered(*_: object) -> tuple[int, dict[str, object]]:
        return 200, {}

    monkeypatch.setattr(probe, "ask", answered)
    monkeypatch.setattr(probe, "other_listener", lambda *_: "process 7 (vllm)")
    row = a_row(a_release(plan=PLAN, profile=a_profile()))
    workload = planned_workload(PLAN.containers[0])
    problem = await probe.answers(row, workload)
    assert problem == f"{workload.name}: process 7 (vllm) listens at {workload.endpoint} too"


@pytest.mark.parametrize(("engine", "key"), [("llama.cpp", "secret"), ("vllm", "")])
def test_metrics_are_read_with_the_engines_key_where_it_guards_them(
    monkeypatch: pytest.MonkeyPatch, engine: str, key: str
) -> None:
    keys = list[str]()

    def read(_url: str, _seconds: float, api_key: str = "") -> str:
        keys.append(api_key)
        return ""

    monkeypatch.setattr(probe, "read_metrics", read)
    monkeypatch.setattr(engine_secrets, "key_secret", lambda *_: "secret")
    monkeypatch.setattr(verify, "_read", lambda name: name)
    plan = PLAN.model_copy(update={"engine": EngineName(engine)})
    row = a_row(a_release(plan=plan, profile=a_profile()))
    probe._token_count(row, planned_workload(PLAN.containers[0]))
    assert keys == [key]


@pytest.mark.parametrize(
    ("engine", "is_late", "health", "busy_for", "is_dead"),
    [
        (EngineName.TRANSFORMERS, True, 200, None, False),
        (EngineName.TRANSFORMERS, True, 200, 1700, False),
        (EngineName.TRANSFORMERS, True, 200, 1900, True),
        (EngineName.TRANSFORMERS, True, 0, None, True),
        (EngineName.TRANSFORMERS, False, 200, None, True),
        (EngineName.TRANSFORMERS, False, 200, 600, True),
        (EngineName.VLLM, True, 200, None, True),
    ],
)
def test_a_late_but_healthy_engine_that_counts_no_tokens_is_busy_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
    silent: ReleaseRow,
    engine: EngineName,
    is_late: bool,
    health: int,
    busy_for: int | None,
    is_dead: bool,
) -> None:
    async def late(*_: object) -> tuple[str, bool]:
        return "no answer", is_late

    async def asked(*_: object) -> tuple[int, str]:
        return health, ""

    monkeypatch.setattr(probe, "_problem", late)
    monkeypatch.setattr(probe, "ask", asked)
    plan = PLAN.model_copy(update={"engine": engine})
    row = replace(silent, release=a_release(silent.id, plan=plan, profile=a_profile()))
    (name,) = [one.name for one in row.workloads]
    since = {name: int(time.time()) - busy_for} if busy_for else {}
    ledger().repairs.keep(RepairRecord(release=row.id, busy_since=since))

    record, problems = probe.probe_replicas(row)
    assert bool(problems) == is_dead
    if busy_for or not is_dead:  # one refused connection in between starts no new half hour
        assert record.busy_since[name] == pytest.approx(time.time() - (busy_for or 0), abs=9)
    ledger().repairs.keep(record.model_copy(update={"started_at": datetime.now(UTC)}))
    assert probe.probe_replicas(row)[1], "what was just started has its own deadline"


@pytest.mark.parametrize(
    ("status", "took", "is_late"), [(0, 30.0, True), (0, 0.1, False), (503, 30.0, False)]
)
async def test_only_what_gives_no_answer_in_time_is_late(
    monkeypatch: pytest.MonkeyPatch, status: int, took: float, is_late: bool
) -> None:
    async def asked(*_: object) -> tuple[int, str]:
        now[0] += took
        return status, ""

    now = [100.0]
    monkeypatch.setattr(probe, "ask", asked)
    monkeypatch.setattr(probe, "time", SimpleNamespace(monotonic=lambda: now[0]))
    row = a_row(a_release(plan=PLAN, profile=a_profile()))
    problem, late = await probe._problem(row, planned_workload(PLAN.containers[0]))
    assert problem
    assert late is is_late
