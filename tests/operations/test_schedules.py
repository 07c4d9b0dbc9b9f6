"""Which schedules Prefect should have for a model, and what has to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.operations.schedules import (
    SLEEP,
    WAKE,
    ModelSchedule,
    ScheduleChanges,
    model_of,
    schedule_changes,
    schedules_of,
)
from moorage.spec.schedule import ScheduleSpec

MORNING = ModelSchedule("llama", WAKE, "0 7 * * *", "UTC", {"name": "llama"})
OLD = {"name": "llama", "fleet": {"hosts": [{"name": "gpu-1"}]}}
NOTHING = ScheduleChanges((), (), ())


def test_each_time_is_a_schedule_of_its_own_deployment() -> None:
    spec = ScheduleSpec(awake="0 7 * * 1-5", asleep="0 20 * * *", timezone="Europe/Berlin")
    wake, sleep = schedules_of("llama", spec)
    assert (wake.deployment, wake.cron, wake.timezone) == (WAKE, "0 7 * * 1-5", "Europe/Berlin")
    assert wake.parameters == {"name": "llama", "requested_by": "its schedule"}
    assert (sleep.deployment, sleep.cron, sleep.timezone) == (SLEEP, "0 20 * * *", "Europe/Berlin")
    assert sleep.parameters.keys() == {"name", "requested_by", "reason"}
    assert model_of(wake.slug) == model_of(sleep.slug) == "llama"


def test_without_times_there_is_nothing_to_schedule() -> None:
    assert schedules_of("llama", None) == ()
    assert [one.deployment for one in schedules_of("a", ScheduleSpec(asleep="0 20 * * *"))] == [
        SLEEP
    ]


@pytest.mark.parametrize("slug", [None, "", "nightly", "Moorage.x"])
def test_schedules_of_others_are_no_models(slug: str | None) -> None:
    assert model_of(slug) is None


@pytest.mark.parametrize(
    ("wanted", "found", "changes"),
    [
        ([], [], NOTHING),
        ([MORNING], [MORNING], NOTHING),
        ([MORNING], [], ScheduleChanges((MORNING,), (), ())),
        ([], [MORNING], ScheduleChanges((), (), (MORNING.slug,))),
        ([MORNING], [replace(MORNING, cron="0 6 * * *")], ScheduleChanges((), (MORNING,), ())),
        ([MORNING], [replace(MORNING, timezone="CET")], ScheduleChanges((), (MORNING,), ())),
        ([MORNING], [replace(MORNING, parameters=OLD)], ScheduleChanges((), (MORNING,), ())),
    ],
)
def test_what_is_missing_is_made_and_what_differs_is_changed(
    wanted: list[ModelSchedule], found: list[ModelSchedule], changes: ScheduleChanges
) -> None:
    assert schedule_changes(wanted, found) == changes
