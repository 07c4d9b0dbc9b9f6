"""Deploy a model: from a spec to an engine that answers, and a record of why."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import told, unchanged
from flows.plan_source import Afresh
from flows.release_rollout import deploy_on_a_free_port
from flows.replacement_summary import announcement
from flows.require_approval import permitted
from flows.result_recovery import remembered
from moorage.inventory.fleet import Fleet
from moorage.releases.release import Release
from moorage.releases.requester import Claim
from moorage.spec import ModelSpec
from tasks.analysis import Analysis
from tasks.cleanup import sole_flow
from tasks.compare import overtaken, serving
from tasks.context import in_thread, ledger
from tasks.image import moved
from tasks.map_hosts import task_runner
from tasks.plan import check_early
from tasks.policy import current_submission, require_allowed


@flow(
    name="deploy-model",
    flow_run_name="deploy {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
@remembered
async def deploy_model(
    spec: ModelSpec,
    fleet: Fleet = Fleet(),  # noqa: B008
    applied_from: str = "",
    force: bool = False,
    requested_by: Claim = "",
) -> State[Release]:
    """Deploy a model so that it answers under its name.

    Deploying an identical spec again changes nothing. A changed one is started beside the release
    that serves, verified, and then takes over; when both do not fit, the old one stops first.

    Args:
        spec: The model as it is meant to be served. Only name and source are needed; the rest may
            stay as it is.
        fleet: The hosts it may run on; without it, those of the worker, else this machine.
        applied_from: Set of files that it is applied from, for the record; empty = none.
        force: Replace what serves even where neither the spec nor the model has changed, such as by
            the image that its tag stands for now.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    async with told(spec.name, requested_by) as story:
        submission = current_submission()
        fleet = await require_allowed(spec, fleet, applied_from)
        await check_early(spec, fleet)
        await permitted(spec, fleet, force=force)
        async with sole_flow(spec.name, story.flow_run_id, story.journal):
            if said := await in_thread(overtaken, spec.name):
                return Completed(name="Unchanged", message=f"unchanged: {said}")
            old, healthy = await serving(spec, fleet.avoided_hosts)
            analysis = Analysis(spec)
            if old and healthy and old.spec_digest == spec.digest and not force:
                # Only the model itself can have changed; where it did not, no release is begun.
                model = (await analysis.found()).model
                if old.is_of(spec, model.revision, model.pins):
                    await in_thread(ledger().releases.revise, old, spec)
                    return unchanged(old, await moved(old, fleet))
            recipe = Afresh(spec, {"applied_from": applied_from, "submission": submission})
            release = await deploy_on_a_free_port(story, recipe, fleet, analysis, old)
    return Completed(message=announcement(release), data=release)
