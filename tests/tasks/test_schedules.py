"""Schedules of models where Prefect's server lacks what they need."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from tasks import schedules
from tasks.release import set_schedule
from tests.builders import a_spec

SCHEDULED = "moorage.adapters.prefect.schedules.scheduled_deployments"
SPEC = a_spec(schedule={"awake": "0 7 * * *"})


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(schedules, "tell", found.append)
    return found


async def test_a_model_is_deployed_before_anybody_serves_the_flows(
    messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_deployments() -> tuple[()]:
        return ()

    monkeypatch.setattr(SCHEDULED, no_deployments)
    await set_schedule(SPEC, Fleet(), None)
    (message,) = messages
    assert "moorage serve" in message
    assert "wake-model/wake" in message


async def test_a_server_that_does_not_answer_fails_no_deploy(
    messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> tuple[()]:
        raise Failure(Cause.SERVER_UNAVAILABLE, "no answer")

    monkeypatch.setattr(SCHEDULED, away)
    await set_schedule(SPEC, Fleet(), None)
    assert "reconciling tries again" in messages[0]


async def test_without_a_schedule_prefect_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(SCHEDULED, lambda: calls.append(None))
    await set_schedule(a_spec(), Fleet(), None)
    assert calls == []
