"""Plan a deployment: the steps of a deploy, up to the first effect that changes anything."""

from dataclasses import dataclass
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import (
    NO_RESULT,
    FlowContext,
    flow_context,
    keep_result,
    unchanged,
    with_result,
)
from moorage.adapters.prefect.task_runner import task_runner
from moorage.inventory.fleet import Fleet
from moorage.operations.history.rollback import pinned_spec, require_same
from moorage.operations.redeploy.intent import Question
from moorage.placement.placement import Analyzed
from moorage.policy.request import Submission
from moorage.releases.release import Release, ReleaseRow, replaceable
from moorage.spec import Approval, ModelSpec
from tasks.compare import serving
from tasks.derive import derive
from tasks.image import choose_image, image_drift
from tasks.place import dry_place
from tasks.plan import check_early, check_placed, plan_release
from tasks.policy import ask, current_submission, is_approved, require_allowed, require_allowed_size
from tasks.release import ReleaseDraft, approval_page, publish_plan
from tasks.resolve import resolve
from tasks.survey import survey_without_abandoned


@flow(name="plan-model", flow_run_name="plan {spec.name}", **NO_RESULT, task_runner=task_runner())
@keep_result
async def plan_model(spec: ModelSpec, fleet: Fleet = Fleet()) -> State[Release]:  # noqa: B008
    """Say exactly what deploying a model would run now, and why. Nothing is claimed or started.

    Args:
        spec: The model as it is meant to be served. Only name and source are needed; the rest may
            stay as it is.
        fleet: The hosts it may run on; without it, those of the worker, else this machine.
    """
    async with flow_context(spec.name) as context:
        submission = current_submission()
        fleet = await require_allowed(spec, fleet)
        await check_early(spec, fleet)
        source = ReleaseSource(spec, {})
        model = (await source.resolve_and_derive()).model
        old, healthy = await serving(spec)
        if old and healthy and old.is_of(spec, model.revision, model.pins):
            return unchanged(old, await image_drift(old, fleet))
        release = await dry_run(context, source, fleet, old, submission)
    return Completed(message=f"{release.id} would run", data=release)


@dataclass
class ReleaseSource:
    """Where a release comes from: its spec, or an earlier release (`target`) that runs again.

    Facts are the fields of the record that say so.
    """

    spec: ModelSpec
    facts: dict[str, Any]
    target: Release | None = None
    analyzed: Analyzed | None = None

    async def resolve_and_derive(self) -> Analyzed:
        """Resolve the model and derive its profile, once for all attempts of a flow run.

        An earlier release needs its recorded revisions; what was removed is staged again later.
        """
        if self.analyzed is None:
            spec = pinned_spec(self.target) if self.target else self.spec
            model = await resolve(spec)
            if self.target:
                require_same(self.target, model)
            self.analyzed = Analyzed(self.spec, model, await derive(spec, model))
        return self.analyzed


async def dry_run(
    context: FlowContext,
    source: ReleaseSource,
    fleet: Fleet,
    old: ReleaseRow | None,
    submission: Submission | None = None,
) -> Release:
    """Record and show what deploying a model would run.

    With a submission, its owner is held to the sizes of the policy.
    """
    draft, spec, target = ReleaseDraft(context.journal, old), source.spec, source.target
    analyzed = await source.resolve_and_derive()
    snapshot = await survey_without_abandoned(fleet, spec)
    placement = await dry_place(analyzed, snapshot, replaceable(old), target)
    if submission:
        await require_allowed_size(spec, placement, submission)
    identity = await draft.preview(spec, context.flow_run_id, context.begun, source.facts)
    placed = analyzed.placed(placement, snapshot, identity)
    notes = await check_placed(placed, target)
    image = target.image if target else await choose_image(placed)
    plan = plan_release(placed, image, notes, target)
    draft.add_analysis(analyzed)
    draft.finish(placement=placement, image=image, plan=plan)
    await publish_plan(draft.release, f"What deploying {spec.name} would run")
    return draft.release


async def require_approval(spec: ModelSpec, fleet: Fleet, *, force: bool) -> None:
    """Return once the deploy may begin: at once where no approval is needed, or nothing changes.

    The plan is a run of `plan-model` below this one. It is made without the lock of the model's
    name, so that no other flow waits for a person. The deploy plans anew after the approval.

    Raises:
        Failure: When nobody agreed, or the model cannot be deployed at all.
    """
    if spec.redeploy.approval != Approval.REQUIRED or is_approved(spec.name):
        return
    state: State[Any] = with_result(await plan_model(spec, fleet, return_state=True))
    release: Release = await state.aresult()
    if state.name == "Unchanged" and not force:
        return
    page = await approval_page(spec, release, unchanged=state.name == "Unchanged")
    await ask(Question(models=(spec.name,), plan=page, seconds=spec.redeploy.approval_seconds))
