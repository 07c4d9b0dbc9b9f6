"""Plan a deployment: the same chain, stopped before the first effect that changes anything."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.dry_run import survey_cleaned_up, would_run
from flows.flow_context import told, unchanged
from flows.result_recovery import remembered
from moorage.inventory.fleet import Fleet
from moorage.releases.release import Release
from moorage.spec import ModelSpec
from tasks.analysis import Analysis
from tasks.cleanup import replaceable
from tasks.compare import serving
from tasks.context import in_thread, ledger
from tasks.image import choose, moved
from tasks.map_hosts import task_runner
from tasks.place import propose_placement
from tasks.plan import check_early, check_placed, planned
from tasks.policy import current_submission, require_allowed, require_allowed_size


@flow(
    name="plan-model",
    flow_run_name="plan {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
@remembered
async def plan_model(spec: ModelSpec, fleet: Fleet = Fleet()) -> State[Release]:  # noqa: B008
    """Say exactly what deploying a model would run now, and why. Nothing is claimed or started.

    Args:
        spec: The model as it is meant to be served. Only name and source are needed; the rest may
            stay as it is.
        fleet: The hosts it may run on; without it, those of the worker, else this machine.
    """
    async with told(spec.name) as story:
        submission = current_submission()
        fleet = await require_allowed(spec, fleet)
        await check_early(spec, fleet)
        analyzed = await Analysis(spec).found()
        old, healthy = await serving(spec)
        if old and healthy and old.is_of(spec, analyzed.model.revision, analyzed.model.pins):
            return unchanged(old, await moved(old, fleet))
        snapshot = await survey_cleaned_up(fleet, spec)
        placement = await propose_placement(analyzed, snapshot, replaceable(old))
        await require_allowed_size(spec, placement, submission)
        identity = await in_thread(ledger().releases.next_id, spec.name)
        placed = analyzed.placed(placement, snapshot, identity)
        notes = await check_placed(placed)
        image = await choose(spec, placement, snapshot)
        release = await would_run(story, placed, image, planned(placed, image, notes), old)
    return Completed(message=f"{identity} would run", data=release)
