"""Schedules of models where Prefect's server lacks what they need, and while models change."""

from __future__ import annotations

from uuid import uuid4

import pytest

from moorage.adapters.prefect.schedules import ScheduledDeployment
from moorage.common.failures import Cause, Failure
from moorage.operations.schedules import WAKE, ScheduleChanges, schedules_of
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec
from tasks import schedules
from tasks.context import ledger
from tasks.release import set_schedule
from tests.builders import REVISION, a_release, a_spec

S = ReleaseState

SCHEDULED = "moorage.adapters.prefect.schedules.scheduled_deployments"
CHANGED = "moorage.adapters.prefect.schedules.change_schedules"
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
    await set_schedule(SPEC, None)
    (message,) = messages
    assert "moorage serve" in message
    assert "wake-model/wake" in message


async def test_a_server_that_does_not_answer_fails_no_deploy(
    messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> tuple[()]:
        raise Failure(Cause.SERVER_UNAVAILABLE, "no answer")

    monkeypatch.setattr(SCHEDULED, away)
    await set_schedule(SPEC, None)
    assert "reconciling tries again" in messages[0]


async def test_without_a_schedule_prefect_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(SCHEDULED, lambda: calls.append(None))
    await set_schedule(a_spec(), None)
    assert calls == []


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(
    ("states", "removed"),
    [
        ((), False),
        ((S.STOPPING,), False),
        ((S.STOPPING, S.ASLEEP, S.WAKING), False),
        ((S.STOPPING, S.STOPPED), True),
    ],
)
async def test_reconciling_leaves_the_schedules_of_a_model_until_it_is_retired(
    states: tuple[ReleaseState, ...], removed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, made = ledger().releases, list[ScheduleChanges]()
    release = own.begin(SPEC, REVISION, "")
    for state in (S.SCHEDULED, S.STARTING):
        own.move(release, state)
    own.take_over(a_release(release, spec=SPEC))
    for state in states:
        own.move(release, state)
    there = schedules_of("tiny", SPEC.schedule)

    async def deployments() -> tuple[ScheduledDeployment, ...]:
        found = {one.slug: uuid4() for one in there}
        return (ScheduledDeployment(WAKE, uuid4(), there, found),)

    async def change(_deployment: ScheduledDeployment, changes: ScheduleChanges) -> None:
        made.append(changes)

    monkeypatch.setattr(SCHEDULED, deployments)
    monkeypatch.setattr(CHANGED, change)
    await schedules.restore_schedules()
    assert [one.delete for one in made] == ([("moorage.tiny",)] if removed else [])


async def test_a_recorded_time_that_prefect_does_not_know_spares_the_other_models(
    messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one_deployment() -> tuple[ScheduledDeployment]:
        return (ScheduledDeployment(WAKE, uuid4(), (), {}),)

    created: list[str] = []

    async def change(_one: ScheduledDeployment, changes: ScheduleChanges) -> None:
        created.extend(one.model for one in changes.create)

    monkeypatch.setattr(SCHEDULED, one_deployment)
    monkeypatch.setattr(CHANGED, change)
    old = SPEC.model_dump(mode="json") | {"schedule": {"awake": "0 20 * * 5L"}}
    recorded = ModelSpec.from_record(old).schedule
    wanted = [*schedules_of("old", recorded), *schedules_of("new", SPEC.schedule)]
    await schedules.set_schedules(["old", "new"], wanted)
    assert created == ["new"]
    assert "old gets no schedule" in messages[0]
