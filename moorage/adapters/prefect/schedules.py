"""Schedules of models on Prefect's server."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound

from moorage.adapters.prefect.api_errors import server_failures
from moorage.operations.schedules import DEPLOYMENTS, ModelSchedule, ScheduleChanges, model_of


@dataclass(frozen=True)
class ScheduledDeployment:
    """A deployment that wakes models or puts them to sleep.

    Attributes:
        name: `flow/deployment`.
        identity: Prefect's id of the deployment.
        schedules: The schedules that moorage has created.
        identities: Prefect's ids of these schedules, by slug.
    """

    name: str
    identity: UUID
    schedules: tuple[ModelSchedule, ...]
    identities: Mapping[str, UUID]


async def scheduled_deployments() -> tuple[ScheduledDeployment, ...]:
    """The deployments for schedules that exist on the server; raises as `server_failures`."""
    found = []
    with server_failures():
        async with get_client() as client:
            for name in DEPLOYMENTS:
                try:
                    one = await client.read_deployment_by_name(name)
                except ObjectNotFound:
                    continue
                found.append(_of_deployment(name, one.id, one.schedules))
    return tuple(found)


async def change_schedules(deployment: ScheduledDeployment, changes: ScheduleChanges) -> None:
    """Apply changes. A schedule that a person has switched off stays off.

    Raises as `server_failures`.
    """
    identity = deployment.identity
    with server_failures():
        async with get_client() as client:
            if changes.create:
                new = [creation_of(one) for one in changes.create]
                await client.create_deployment_schedules(identity, new)
            for one in changes.update:
                await client.update_deployment_schedule(
                    identity,
                    deployment.identities[one.slug],
                    schedule=CronSchedule(cron=one.cron, timezone=one.timezone),
                    parameters=dict(one.parameters),
                )
            for slug in changes.delete:
                await client.delete_deployment_schedule(identity, deployment.identities[slug])


async def remove_other_schedules(deployment: UUID, slugs: Collection[str | None]) -> None:
    """Delete the schedules of a deployment that have none of these slugs and belong to no model.

    Prefect only adds and changes schedules when a deployment is registered again. Raises as
    `server_failures`.
    """
    with server_failures():
        async with get_client() as client:
            for one in await client.read_deployment_schedules(deployment):
                if one.slug not in slugs and model_of(one.slug) is None:
                    await client.delete_deployment_schedule(deployment, one.id)


def is_possible(one: ModelSchedule) -> bool:
    """Whether Prefect knows the time and the zone of a schedule; a recorded one may be older."""
    try:
        creation_of(one)
    except ValueError:
        return False
    return True


def creation_of(one: ModelSchedule) -> DeploymentScheduleCreate:
    """The schedule as Prefect's client creates it."""
    return DeploymentScheduleCreate(
        slug=one.slug,
        schedule=CronSchedule(cron=one.cron, timezone=one.timezone),
        parameters=dict(one.parameters),
    )


def _of_deployment(
    name: str, identity: UUID, schedules: Sequence[DeploymentSchedule]
) -> ScheduledDeployment:
    ours = {
        one.slug: (
            one.id,
            ModelSchedule(model, name, cron.cron, cron.timezone or "", one.parameters),
        )
        for one in schedules
        if one.slug
        and (model := model_of(one.slug))
        and isinstance(cron := one.schedule, CronSchedule)
    }
    return ScheduledDeployment(
        name,
        identity,
        tuple(schedule for _, schedule in ours.values()),
        {slug: identity for slug, (identity, _) in ours.items()},
    )
