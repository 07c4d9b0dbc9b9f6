"""Schedules on which a model wakes and goes to sleep."""

import re
from datetime import UTC, datetime
from typing import Annotated, Self
from zoneinfo import available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from moorage.common.values import RECORDED, InputValue

CRON_FIELDS = 5
LONGEST = 100
UNKNOWN_TO_PREFECT = re.compile(r"LW|\dL", re.IGNORECASE)
LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def _check_cron(written: str, info: ValidationInfo) -> str:
    if info.context == RECORDED:
        return written
    try:
        if len(written.split()) != CRON_FIELDS:
            raise CronSimError("it needs 5 fields")
        if UNKNOWN_TO_PREFECT.search(written):
            raise ValueError("Prefect knows `L` only as the last day of the month")
        next(CronSim(written, LEAP_YEAR))
    except CronSimError as error:
        example = "minute, hour, day of the month, month, day of the week: `0 7 * * 1-5`"
        raise ValueError(f"{str(error).lower()}; write {example}") from None
    except StopIteration:
        raise ValueError("this time never comes") from None
    return written


def _check_timezone(name: str, info: ValidationInfo) -> str:
    if info.context != RECORDED and name not in available_timezones():
        raise ValueError("no such time zone; write a name such as `Europe/Berlin`")
    return name


Cron = Annotated[str, Field(max_length=LONGEST), AfterValidator(_check_cron)]
TimeZone = Annotated[str, Field(max_length=LONGEST), AfterValidator(_check_timezone)]


class ScheduleSpec(InputValue):
    """When a model wakes and sleeps by the clock, as schedules of Prefect."""

    awake: Cron | None = Field(
        None,
        description="When the model wakes, as a cron expression such as `0 7 * * 1-5`. Empty ="
        " only requests and `moorage load` wake it.",
    )
    asleep: Cron | None = Field(
        None,
        description="When the model goes to sleep, such as `0 20 * * *`. Empty = never by"
        " the clock.",
    )
    timezone: TimeZone = Field(
        "UTC", description="Time zone of both, by its IANA name such as `Europe/Berlin`."
    )

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if not (self.awake or self.asleep):
            raise ValueError("`awake` or `asleep` is needed")
        if self.awake == self.asleep:
            raise ValueError("`awake` and `asleep` are the same time")
        return self
