"""Plan a deployment: the steps of a deploy, up to the first effect that changes anything."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import FlowContext, flow_context, keep_result, unchanged, with_result
from moorage.adapters.prefect.task_runner import task_runner
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.operations.redeploy.intent import Question
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.policy.request import Submission
from moorage.releases.release import Release, ReleaseRow, replaceable
from moorage.spec import Approval, ModelSpec
from tasks.compare import serving
from tasks.derive import derive
from tasks.image import choose_image, image_drift, pull_image
from tasks.place import dry_place, propose_best
from tasks.plan import check_early, check_placed, plan_release
from tasks.policy import ask, current_submission, is_approved, require_allowed, require_allowed_size
from tasks.release import ReleaseDraft, approval_page, publish_plan
from tasks.resolve import resolve
from tasks.survey import survey_without_abandoned


@flow(
    name="plan-model",
    flow_run_name="plan {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
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
        source = FreshPlan(spec)
        model = (await source.resolve_and_derive()).model
        old, healthy = await serving(spec)
        if old and healthy and old.is_of(spec, model.revision, model.pins):
            return unchanged(old, await image_drift(old, fleet))
        release = await dry_run(context, source, fleet, old, submission)
    return Completed(message=f"{release.id} would run", data=release)


class FreshPlan:
    """Plans a release from its spec alone: where it fits best now, by the rules of today.

    `RollbackPlan` overrides what an earlier release decides. `facts` are fields of the record that
    say where the release comes from.
    """

    def __init__(self, spec: ModelSpec, **facts: Any) -> None:
        self.spec, self.facts = spec, facts
        self.analyzed: Analyzed | None = None

    async def resolve_and_derive(self) -> Analyzed:
        """Resolve the model and derive its profile, once for all attempts of a flow run."""
        if self.analyzed is None:
            self.analyzed = await self._resolve_and_derive()
        return self.analyzed

    async def _resolve_and_derive(self) -> Analyzed:
        model = await resolve(self.spec)
        return Analyzed(self.spec, model, await derive(self.spec, model))

    async def propose(self, analyzed: Analyzed, running: str, snapshot: FleetSnapshot) -> Placement:
        """Choose where it would run."""
        return await propose_best(analyzed, running, snapshot)

    async def check(self, placed: Placed) -> tuple[str, ...]:
        """Check its arguments before anything is pulled; returns warnings for a person."""
        return await check_placed(placed)

    async def choose_image(self, placed: Placed) -> Image | None:
        """Choose its image; nothing is pulled. None: the engine is installed on the host."""
        return await choose_image(placed)

    async def pull_image(self, placed: Placed) -> Image | None:
        """Have its image on every placed host. None: the engine is installed there."""
        return await pull_image(placed)

    def plan(self, placed: Placed, image: Image | None, notes: tuple[str, ...]) -> LaunchPlan:
        """Work out exactly what runs."""
        return plan_release(placed, image, notes)


async def dry_run(
    context: FlowContext,
    source: FreshPlan,
    fleet: Fleet,
    old: ReleaseRow | None,
    submission: Submission | None = None,
) -> Release:
    """Record and show what deploying a model would run.

    With a submission, its owner is held to the sizes of the policy.
    """
    draft, spec = ReleaseDraft(context.journal, old), source.spec
    analyzed = await source.resolve_and_derive()
    snapshot = await survey_without_abandoned(fleet, spec)
    placement = await dry_place(source.propose, analyzed, snapshot, replaceable(old))
    if submission:
        await require_allowed_size(spec, placement, submission)
    identity = await draft.preview(spec, context.flow_run_id, context.begun, source.facts)
    placed = analyzed.placed(placement, snapshot, identity)
    notes = await source.check(placed)
    image = await source.choose_image(placed)
    plan = source.plan(placed, image, notes)
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
