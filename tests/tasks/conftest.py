"""Fixtures of tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moorage.engines.launch import planned_workload
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.releases.release_row import ReleaseRow
from tasks import probe
from tasks.context import ledger
from tests.builders import a_release
from tests.homes import own_home
from tests.policies import written_policy
from tests.prefect_server import flows_run_there, runs_server
from tests.tasks.test_launch import on
from tests.tasks.test_replace import PLAN, stopping_for_another

__all__ = ["flows_run_there", "own_home", "runs_server"]

AsSite = Callable[[dict[str, Any]], Fleet]


@pytest.fixture
def as_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsSite:
    """Make a host the only one of the fleet that the policy names."""

    def written(host: dict[str, Any]) -> Fleet:
        content = {"hosts": [host]}
        (tmp_path / "fleet.yaml").write_text(json.dumps(content))
        policy = written_policy(tmp_path / "policy.yaml", f"fleet: {tmp_path / 'fleet.yaml'}\n")
        monkeypatch.setenv("MOORAGE_POLICY", str(policy))
        return Fleet.model_validate(content)

    return written


def on_a_gpu() -> ReleaseRow:
    row, _ = stopping_for_another()
    release = a_release(row.id, placement=on("gpu-1:0"), plan=PLAN)
    return replace(row, release=release, workloads=())


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> ReleaseRow:
    """A release that missed two probes after it had generated ten tokens; it never answers."""

    async def no_answer(*_: object) -> tuple[str, bool]:
        return "no answer", False

    monkeypatch.setattr(probe, "_problem", no_answer)
    monkeypatch.setattr(probe, "_token_count", lambda *_: None)
    row, workload = on_a_gpu(), planned_workload(PLAN.containers[0])
    record = RepairRecord(release=row.id, missed=2, tokens={workload.name: 10})
    ledger().repairs.keep(record)
    return replace(row, workloads=(workload,))
