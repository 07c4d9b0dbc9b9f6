"""Times at which a model is woken and put to sleep, as they are written."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.builders import a_spec

WORKDAYS = {"awake": "0 7 * * 1-5", "asleep": "0 20 * * *", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    "written",
    [
        WORKDAYS,
        {"asleep": "*/30 22-23 * * MON,SUN"},
        {"awake": "0 6 1 * *", "timezone": "America/Argentina/Buenos_Aires"},
        {"awake": "0 0 29 2 *"},
    ],
)
def test_times_are_kept_as_they_were_written(written: dict[str, str]) -> None:
    spec = a_spec(schedule=written)
    assert spec.model_dump(mode="json", exclude_defaults=True)["schedule"] == written


@pytest.mark.parametrize(
    ("written", "field", "message"),
    [
        ({}, "schedule", "`awake` or `asleep`"),
        ({"timezone": "UTC"}, "schedule", "`awake` or `asleep`"),
        ({"awake": "0 7 * * *", "asleep": "0 7 * * *"}, "schedule", "same time"),
        ({"awake": "7:00"}, "schedule.awake", "0 7 \\* \\* 1-5"),
        ({"awake": "@daily"}, "schedule.awake", "5 fields"),
        ({"awake": "* * * * * *"}, "schedule.awake", "5 fields"),
        ({"asleep": "0 25 * * *"}, "schedule.asleep", "hour"),
        ({"asleep": "0 0 30 2 *"}, "schedule.asleep", "day"),
        ({"asleep": "0 0 * * *" + " " * 100}, "schedule.asleep", "100"),
        ({"awake": "0 7 * * *", "timezone": "Berlin"}, "schedule.timezone", "Europe/Berlin"),
        ({"awake": "0 7 * * *", "timezone": "../../etc/passwd"}, "schedule.timezone", "time zone"),
        ({"awake": "0 7 * * *", "timezone": "Europe"}, "schedule.timezone", "time zone"),
        ({"awake": "0 7 * * *", "timezone": "posix/UTC"}, "schedule.timezone", "time zone"),
        ({"asleep": "0 20 * * 5L"}, "schedule.asleep", "knows `L` only"),
        ({"asleep": "0 20 LW * *"}, "schedule.asleep", "knows `L` only"),
        ({"awake": "0 7 * * *", "timezone": ""}, "schedule.timezone", "time zone"),
    ],
)
def test_what_is_no_time_is_refused_with_what_may_be_written(
    written: dict[str, str], field: str, message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        a_spec(schedule=written)
    assert field in {".".join(map(str, one["loc"])) for one in refused.value.errors()}


def test_it_does_not_change_what_runs() -> None:
    assert a_spec(schedule=WORKDAYS).digest == a_spec().digest
