"""What a reconcile shows on Prefect's pages."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows import reconcile_fleet as flow
from moorage.adapters.ledger.locks import LockHeld
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome
from tasks.compare import replaceable
from tests.builders import a_plan, a_release, a_row
from tests.operations.reconcile.worlds import a_world


@pytest.mark.parametrize("acted", [False, True])
async def test_the_page_of_the_hosts_is_about_the_hosts_alone(
    monkeypatch: pytest.MonkeyPatch, acted: bool
) -> None:
    """It stays as long as its rows are the same, whatever later reconciles do."""
    shown: dict[str, str] = {}

    async def show_table(
        key: str, rows: list[dict[str, Any]], description: str, *, if_changed: bool = False
    ) -> None:
        assert rows
        assert if_changed == (key == "reconcile-hosts")
        shown[key] = description

    monkeypatch.setattr(flow, "show_table", show_table)
    done = ActionOutcome(action=Action(kind=ActionKind.RESTART, release="tiny.v1", reason="died"))
    await flow._publish(a_world(), [done] if acted else [])
    assert shown["reconcile-hosts"] == "1 host surveyed"
    assert ("reconcile" in shown) == acted


RESTART = Action(kind=ActionKind.RESTART, release="tiny.v1", reason="died")
LACKING = ActionOutcome(action=RESTART, done=False, lacks_image=(0,))
WAITS = ActionOutcome(action=Action(kind=ActionKind.WAIT, reason="not yet"), done=False)
MOVED = ActionOutcome(action=Action(kind=ActionKind.REPLACE, release="other.v1", reason="lost"))
THERE = ActionOutcome(action=RESTART, done=False, summary="its image is there again")
STARTED = ActionOutcome(action=RESTART, summary="started again: tiny-1")
FAILED = ActionOutcome(action=RESTART, done=False, cause=Cause.IMAGE_MISSING, exit_code=5)
BUSY = LockHeld("reconcile:fleet is held by flow run 7")


@pytest.mark.parametrize(
    ("pulled", "second", "expected"),
    [
        pytest.param(THERE, STARTED, (STARTED,), id="a second round starts it"),
        pytest.param(THERE, BUSY, (THERE,), id="a newer reconcile starts it"),
        pytest.param(FAILED, None, (FAILED,), id="the pull failed"),
    ],
)
async def test_a_restart_without_its_image_waits_for_the_pull_outside_the_lock(
    monkeypatch: pytest.MonkeyPatch,
    pulled: ActionOutcome,
    second: ActionOutcome | LockHeld | None,
    expected: tuple[ActionOutcome, ...],
) -> None:
    rounds: list[Any] = [second] if second else []

    async def another_round(*_: object) -> flow.Round:
        found = rounds.pop(0)
        if isinstance(found, LockHeld):
            raise found
        return a_world(), (found,)

    async def fetch_images(restarts: list[ActionOutcome]) -> tuple[ActionOutcome, ...]:
        assert restarts == [LACKING]
        return (pulled,)

    monkeypatch.setattr(flow, "_round", another_round)
    monkeypatch.setattr(flow, "fetch_images", fetch_images)
    context: Any = None
    first = (WAITS, LACKING, MOVED)
    _, outcomes = await flow._round_with_images(context, Fleet(), a_world(), first)
    again = expected == (STARTED,)  # then its own waits are the news
    assert outcomes == (*(() if again else (WAITS,)), MOVED, *expected)
    assert not rounds


@pytest.mark.parametrize("spares", [False, True])
async def test_a_repair_stops_nothing_first_that_still_runs(
    monkeypatch: pytest.MonkeyPatch, spares: bool
) -> None:
    stopped_first: list[str] = []

    async def begin() -> State[Any]:
        stopped_first.append(replaceable(a_row(a_release(plan=a_plan()))))
        return Completed(message="so")

    monkeypatch.setattr(flow, "count_replacement", lambda _: a_release())
    monkeypatch.setattr(flow, "deployment", lambda *_: begin)
    facts = {"release": "tiny.v1", "reason": "died"}
    await flow._replace(Action(kind=ActionKind.REPLACE, spares=spares, **facts), Fleet())
    assert stopped_first == ["" if spares else "tiny.v1"]


@pytest.mark.parametrize(
    ("error", "code"), [(Failure(Cause.NO_FIT, "so"), 3), (ZeroDivisionError("so"), 1)]
)
async def test_a_deploy_in_place_of_a_release_that_fails_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    async def begin() -> State[Any]:
        return Failed(message="so", data=error)

    monkeypatch.setattr(flow, "count_replacement", lambda _: a_release())
    monkeypatch.setattr(flow, "deployment", lambda *_: begin)
    action = Action(kind=ActionKind.REPLACE, release="tiny.v1", reason="died")
    ended = await flow._replace(action, Fleet())
    assert (ended.done, ended.summary, ended.exit_code) == (False, "failed: so", code)
