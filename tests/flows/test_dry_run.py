"""What is planned while a host of the release that serves is away."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flows import dry_run
from flows.dry_run import RunContext, plan_deploy, plan_rollback, require_approval
from moorage.inventory.fleet import Fleet
from moorage.operations.flow_result import FlowResult
from moorage.operations.redeploy.selection import Selection
from moorage.policy.request import Submission
from moorage.releases.release_row import ReleaseRow
from moorage.spec import ModelSpec, OnDrift
from tasks import redeploy_decisions
from tasks.journal import Journal
from tasks.policy import granted, recorded_scope
from tasks.redeploy_decisions import find_intents
from tests.builders import NOON, a_release, a_spec
from tests.tasks.test_compare import CAREFUL, away, on, ran

pytestmark = pytest.mark.usefixtures("own_home")

__all__ = ["away"]

CONTEXT = RunContext(Journal([]), "", NOON)
HOSTS = [
    {"name": name, "address": f"ssh://{name}", "bind": bind}
    for name, bind in (("gpu-1", "10.0.0.11"), ("gpu-2", "10.0.0.12"))
]
FLEET = Fleet.model_validate({"hosts": HOSTS, "avoid": [{"host": "gpu-1"}]})


class Planned(Exception):
    """A plan was made to replace this release."""


@pytest.mark.parametrize(
    "plan",
    [
        lambda: plan_deploy(CONTEXT, a_spec(), FLEET),
        lambda: plan_rollback(CONTEXT, "tiny", "", FLEET),
    ],
    ids=["deploy", "rollback"],
)
async def test_an_avoided_host_that_is_away_keeps_nobody_from_planning(
    monkeypatch: pytest.MonkeyPatch, away: set[str], plan: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    async def planned(_context: Any, _source: Any, _fleet: Any, old: ReleaseRow, *_: Any) -> None:
        raise Planned(old.id)

    monkeypatch.setattr(dry_run, "_plan", planned)
    ran(spec=a_spec(context=512))
    old = on("gpu-1")
    away.add("gpu-1")
    with recorded_scope(Submission(), FLEET), pytest.raises(Planned, match=old.id):
        await plan()


@pytest.mark.parametrize("spec", [a_spec(context=512), CAREFUL])
async def test_whose_release_serves_with_a_required_approval_is_asked(
    monkeypatch: pytest.MonkeyPatch, spec: ModelSpec
) -> None:
    ran(spec=CAREFUL)
    planned = FlowResult("Completed", "", a_release())
    monkeypatch.setattr(dry_run, "plan_deploy", AsyncMock(return_value=planned))
    monkeypatch.setattr(dry_run, "approval_page", AsyncMock(return_value=""))
    monkeypatch.setattr(dry_run, "ask", AsyncMock(return_value="by ann"))
    assert await require_approval(CONTEXT, spec, FLEET, force=False) == "by ann"
    with granted(["tiny"], "by bob"):
        assert await require_approval(CONTEXT, spec, FLEET, force=False) == "by bob"


async def test_a_model_on_an_avoided_host_that_is_away_is_redeployed(
    monkeypatch: pytest.MonkeyPatch, away: set[str]
) -> None:
    async def at_rest(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(redeploy_decisions, "_branch_drift", at_rest)
    on("gpu-1")
    away.add("gpu-1")
    (intent,) = await find_intents(Selection(names=("tiny",)), FLEET)
    assert intent.action == OnDrift.REDEPLOY, intent.failure
