"""Prefect's schedules that wake models and put them to sleep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.spec.schedule import ScheduleSpec

WAKE, SLEEP = "wake-model/wake", "sleep-model/sleep"
DEPLOYMENTS = (WAKE, SLEEP)
"""Deployments on Prefect's server whose runs wake models and put them to sleep."""

PREFIX = "moorage."
REQUESTER = "its schedule"


@dataclass(frozen=True)
class ModelSchedule:
    """A schedule of a deployment (`flow/deployment`) for one model."""

    model: str
    deployment: str
    cron: str
    timezone: str
    parameters: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """The schedule's name in its deployment."""
        return f"{PREFIX}{self.model}"


def schedules_of(model: str, spec: ScheduleSpec | None) -> tuple[ModelSchedule, ...]:
    """The schedules that a model should have.

    They name no fleet: a copy would differ from the worker's fleet as soon as that is edited, and
    the policy refuses other fleets.
    """
    if spec is None:
        return ()
    named = {"name": model, "requested_by": REQUESTER}
    wanted = (
        (WAKE, spec.awake, named),
        (SLEEP, spec.asleep, {**named, "reason": "its schedule says so"}),
    )
    return tuple(
        ModelSchedule(model, deployment, cron, spec.timezone, parameters)
        for deployment, cron, parameters in wanted
        if cron
    )


def model_of(slug: str | None) -> str | None:
    """The model of a schedule; None = not a schedule of moorage."""
    return slug.removeprefix(PREFIX) if slug and slug.startswith(PREFIX) else None


@dataclass(frozen=True)
class ScheduleChanges:
    """Changes that turn the schedules of a deployment into the wanted ones."""

    create: tuple[ModelSchedule, ...]
    update: tuple[ModelSchedule, ...]
    delete: tuple[str, ...]
    """Slugs of the schedules to delete."""

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


def schedule_changes(
    wanted: Iterable[ModelSchedule], found: Sequence[ModelSchedule]
) -> ScheduleChanges:
    """Compare the schedules of one deployment; `found` has those of the compared models."""
    there = {one.model: one for one in found}
    should = {one.model: one for one in wanted}
    both = [one for one in should.values() if one.model in there]
    return ScheduleChanges(
        create=tuple(one for one in should.values() if one.model not in there),
        update=tuple(one for one in both if one != there[one.model]),
        delete=tuple(one.slug for one in found if one.model not in should),
    )
