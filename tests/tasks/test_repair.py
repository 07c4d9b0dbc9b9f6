"""What becomes of a repair that fails, or whose model another flow works on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from moorage.common.failures import Cause, Failure
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.releases.states import ReleaseState
from tasks import repair
from tasks.context import ledger
from tests.tasks.test_compare import ran

pytestmark = pytest.mark.usefixtures("own_home")


def test_a_repair_that_fails_has_an_exit_code_and_one_that_waits_for_a_flow_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "so")

    monkeypatch.setitem(repair.REPAIRS, ActionKind.RESTART, fail)
    state = ReleaseState.RUNNING
    action = Action(
        kind=ActionKind.RESTART, model="tiny", release=ran(), state=state, reason="died"
    )
    [failed] = repair._repair_model("tiny", [action], "")
    assert (failed.done, failed.cause, failed.exit_code) == (False, Cause.RUNTIME_UNAVAILABLE, 8)
    with ledger().locks.holding("tiny", wait_seconds=0, note="its flow"):
        [busy] = repair._repair_model("tiny", [action], "")
    assert (busy.done, busy.cause, busy.exit_code) == (False, None, 0)
    assert "its flow" in busy.summary


def test_a_move_that_fails_waits_longer_each_time() -> None:
    release, state = ran(), ReleaseState.RUNNING
    action = Action(kind=ActionKind.REPLACE, release=release, state=state, reason="away")
    waits = []
    for _ in range(3):
        before = datetime.now(UTC)
        repair.count_replacement(action)
        until = ledger().repairs.of(release).not_before
        assert until
        waits.append(round((until - before).total_seconds()))
    assert waits == [10, 20, 40]
