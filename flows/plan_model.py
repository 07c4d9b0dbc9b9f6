"""Plan a deployment: the same chain, stopped before the first effect that changes anything."""

from __future__ import annotations

from datetime import UTC, datetime

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.story import told, unchanged
from moorage.fleet import Fleet
from moorage.release import Release
from moorage.sites import at_site
from moorage.spec import ModelSpec
from tasks.arguments import check_early, check_placed
from tasks.cleanup import abandoned, replaceable
from tasks.context import in_thread, ledger, settings
from tasks.derive import derive
from tasks.image import choose, moved
from tasks.place import propose_placement
from tasks.plan import planned
from tasks.release import publish_plan, serving
from tasks.resolve import resolve
from tasks.runner import task_runner
from tasks.survey import survey


@flow(
    name="plan-model",
    flow_run_name="plan {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
async def plan_model(spec: ModelSpec, fleet: Fleet = Fleet()) -> State[Release]:  # noqa: B008
    """Say exactly what deploying a model would run now, and why. Nothing is claimed or started.

    Args:
        spec: The model as it is meant to be served. Only name and source are needed; the rest may
            stay as it is.
        fleet: The hosts it may run on; without it, this machine.
    """
    begun = datetime.now(UTC)
    async with told(spec.name) as story:
        fleet = at_site(fleet, settings().site)
        await check_early(spec, fleet)
        model = await resolve(spec)
        profile = await derive(spec, model)
        old, healthy = await serving(spec)
        if old and healthy and old.is_of(spec, model.revision, model.pins):
            return unchanged(old, await moved(old, fleet))
        snapshot = await survey(fleet, spec.placement.cluster)
        # A deploy would clean up first what flows that are gone have left.
        for row in await in_thread(abandoned):
            snapshot = snapshot.without(row.id)
        placement = await propose_placement(spec, model, profile, snapshot, replaceable(old))
        notes = await check_placed(spec, placement, snapshot)
        image = await choose(spec, placement, snapshot)
        identity = await in_thread(ledger().releases.next_id, spec.name)
        plan = planned(spec, model, profile, placement, snapshot, image, identity, notes)
        release = Release(
            id=identity,
            model=spec.name,
            spec=spec,
            spec_digest=spec.digest,
            revision=model.revision,
            companions=model.pins,
            profile=profile,
            placement=placement,
            image=image,
            plan=plan,
            steps=tuple(story.journal.steps),
            replaced=old.id if old else "",
            flow_run_id=story.flow_run_id,
            created_at=begun,
            finished_at=datetime.now(UTC),
        )
        await publish_plan(release)
    return Completed(message=f"{identity} would run", data=release)
