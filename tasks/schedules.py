"""Keep Prefect's schedules for waking models and putting them to sleep as their specs say."""

from collections.abc import Collection, Sequence

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.operations.schedules import ModelSchedule, schedule_changes, schedules_of
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import KEPT
from tasks.context import ledger
from tasks.journal import tell


async def end_schedule(row: ReleaseRow) -> None:
    """Remove the schedules of a retired model."""
    if has_schedule(row):
        await set_schedules([row.model], ())


async def restore_schedules() -> None:
    """Set the schedules of all models of the ledger as their specs say.

    Deploying `prefect.yaml` again removes them, and a person may do so in Prefect's UI.
    """
    rows = await in_thread(ledger().releases.in_states, KEPT)
    # The newest release counts, while an older one still drains.
    specs = {row.model: row.release.spec for row in rows if row.release}
    wanted = [
        schedule for model, spec in specs.items() for schedule in schedules_of(model, spec.schedule)
    ]
    await set_schedules(None, wanted)


async def set_schedules(models: Collection[str] | None, wanted: Sequence[ModelSchedule]) -> None:
    """Set the schedules of models to the wanted ones; None = of all models that the ledger knows.

    Models serve without schedules, too: a failure is only reported, and reconciling retries.
    """
    from moorage.adapters.prefect.schedules import (  # noqa: PLC0415  (imports Prefect)
        change_schedules,
        is_possible,
        scheduled_deployments,
    )

    possible = [one for one in wanted if is_possible(one)]
    for one in wanted:
        if one not in possible:
            tell(f"{one.model} gets no schedule: Prefect knows no `{one.cron}` in {one.timezone}")
    try:
        deployments = await scheduled_deployments()
        for deployment in deployments:
            named = {schedule.model for schedule in deployment.schedules}
            ours = await in_thread(_own_models, named) if models is None else models
            changes = schedule_changes(
                [schedule for schedule in possible if schedule.deployment == deployment.name],
                [schedule for schedule in deployment.schedules if schedule.model in ours],
            )
            if changes:
                await change_schedules(deployment, changes)
    except Failure as failure:
        tell(f"schedules are not set: {failure}; reconciling tries again")
        return
    missing = {schedule.deployment for schedule in possible} - {one.name for one in deployments}
    if missing:
        lacking = " and ".join(sorted(missing))
        tell(f"schedules begin with `moorage serve`: Prefect's server has no {lacking} yet")


def has_schedule(row: ReleaseRow | None) -> bool:
    """Whether the spec of a release has a schedule for waking or sleeping."""
    return bool(row and row.release and row.release.spec.schedule)


def _own_models(models: Collection[str]) -> set[str]:
    """The models of which this ledger has a release; others belong to other ledgers."""
    return set(models).intersection(ledger().releases.models())
