"""Schedules that wake models and put them to sleep follow the specs of what serves."""

from collections.abc import Collection, Sequence

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.schedules import ModelSchedule, schedule_changes, schedules_of
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from tasks.context import ledger
from tasks.journal import tell


async def end_schedule(row: ReleaseRow) -> None:
    """Remove the schedules of a model that is retired."""
    if has_schedule(row):
        await set_schedules([row.model], ())


async def restore_schedules(fleet: Fleet) -> None:
    """Make the schedules of all models of the ledger those of their specs.

    Deploying `prefect.yaml` again removes them, and so may whoever uses Prefect's pages. What is
    there keeps the fleet that it has.
    """
    rows = await in_thread(ledger().releases.in_states, SERVING | {ReleaseState.ASLEEP})
    wanted = [
        schedule
        for row in rows
        if row.release
        for schedule in schedules_of(row.model, row.release.spec.schedule, fleet_parameter(fleet))
    ]
    await set_schedules(None, wanted)


async def set_schedules(models: Collection[str] | None, wanted: Sequence[ModelSchedule]) -> None:
    """Make the schedules of models those that are wanted; None = of all that the ledger knows.

    Models serve without them, too: what fails here is only told, and reconciling does it.
    """
    from moorage.adapters.prefect.schedules import (  # noqa: PLC0415  (imports Prefect)
        change_schedules,
        scheduled_deployments,
    )

    try:
        deployments = await scheduled_deployments()
        for one in deployments:
            named = {schedule.model for schedule in one.schedules}
            ours = await in_thread(_own_models, named) if models is None else models
            changes = schedule_changes(
                [schedule for schedule in wanted if schedule.deployment == one.name],
                [schedule for schedule in one.schedules if schedule.model in ours],
                only_times=models is None,
            )
            if changes:
                await change_schedules(one, changes)
    except Failure as failure:
        tell(f"schedules are not set: {failure}; reconciling tries again")
        return
    missing = {schedule.deployment for schedule in wanted} - {one.name for one in deployments}
    if missing:
        lacking = " and ".join(sorted(missing))
        tell(f"schedules begin with `moorage serve`: Prefect's server has no {lacking} yet")


def has_schedule(row: ReleaseRow | None) -> bool:
    """Whether a release was to be woken or put to sleep by the clock."""
    return bool(row and row.release and row.release.spec.schedule)


def fleet_parameter(fleet: Fleet) -> dict[str, object]:
    """A fleet as a parameter of a flow."""
    return fleet.model_dump(mode="json", exclude_defaults=True)


def _own_models(models: Collection[str]) -> set[str]:
    """Those of which the ledger has a release; others are of other ledgers."""
    return set(models).intersection(ledger().releases.models())
