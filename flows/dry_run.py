"""Dry runs of flows: their chains up to the first effect that changes anything.

Flows call these functions in their runs; commands call them without run, server or Prefect.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.quantizations import FilesChoice, with_files
from moorage.operations.flow_result import FlowResult
from moorage.operations.history.rollback import pinned_spec, require_same, rollback_target
from moorage.operations.reconcile.actions import ActionOutcome
from moorage.operations.reconcile.cluster_state import ClusterState
from moorage.operations.reconcile.decisions import decide
from moorage.operations.redeploy.intent import Intent, Question, Redeployed, is_failure, summary
from moorage.operations.redeploy.selection import Selection
from moorage.placement.placement import Analyzed
from moorage.policy.request import Submission
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.reports.operations_report import changing, reconcile_summary
from moorage.spec import ModelSpec, OnDrift
from moorage.spec.patterns import AUTO_FILES
from tasks.analyze import choose_files, derive, find_quantizations, lacking_room, resolve
from tasks.compare import needs_approval, replaceable, serving
from tasks.context import ledger
from tasks.image import choose_image, image_drift, lacking_image_room
from tasks.journal import Journal, separate_journal
from tasks.observe_fleet import observe_fleet
from tasks.place import dry_place
from tasks.plan import check_early, check_placed, plan_release
from tasks.policy import (
    allowed_scope,
    ask,
    current_submission,
    given_approval,
    recorded_scope,
    require_allowed,
    require_allowed_size,
    settled_fleet,
)
from tasks.redeploy_decisions import find_intents
from tasks.release import ReleaseDraft, approval_page, next_id, publish_plan
from tasks.survey import survey_without_abandoned


@dataclass
class RunContext:
    """A run of a chain: its journal, flow run id (empty = none), and start time."""

    journal: Journal
    flow_run_id: str
    begun: datetime


@dataclass
class ReleaseSource:
    """Origin of a release: its spec, or an earlier release (`target`) that runs again.

    `facts` are the fields of the record that document the origin.
    """

    spec: ModelSpec
    facts: dict[str, Any]
    target: Release | None = None
    analyzed: Analyzed | None = None

    async def resolve_and_derive(
        self, look: Callable[[], Awaitable[FleetSnapshot]], running: str
    ) -> Analyzed:
        """Resolve the model and derive its profile, once for all attempts of a flow run.

        An earlier release requires its recorded revisions; removed files are staged again later.

        Args:
            look: Surveys the fleet; called only when the choice of files depends on the hosts.
            running: The release that may be stopped first.
        """
        if self.analyzed is None and self.target:
            recorded = await self._analyze(pinned_spec(self.target), self.target.files)
            require_same(self.target, recorded.model)
            self.analyzed = recorded
        elif self.analyzed is None:
            spec, choice = self.spec, None
            if spec.files == AUTO_FILES and (found := await find_quantizations(spec)):
                choice = await choose_files(spec, found, await look(), running)
            self.analyzed = await self._analyze(with_files(spec, choice), choice)
        return self.analyzed

    async def is_served_by(self, old: ReleaseRow) -> bool:
        """Whether a release serves this spec at the current revisions of its sources.

        Files that were chosen for it stay chosen as long as they exist. An earlier release serves
        only itself, whatever its sources have become.
        """
        if self.target:
            return old.id == self.target.id
        if old.spec_digest != self.spec.digest:
            return False
        chosen = old.release.files if old.release else None
        try:
            found = await self._analyze(with_files(self.spec, chosen), chosen)
        except Failure as failure:
            if self.spec.files == AUTO_FILES and failure.cause is Cause.SOURCE_INCOMPLETE:
                return False
            raise
        same = old.is_of(self.spec, found.model.revision, found.model.pins)
        if same or self.spec.files != AUTO_FILES:
            self.analyzed = found
        return same

    async def _analyze(self, spec: ModelSpec, files: FilesChoice | None) -> Analyzed:
        model = await resolve(spec)
        own = self.spec.model_copy(update={"files": spec.files})
        return Analyzed(own, model, await derive(spec, model), files=files)


async def plan_deploy(context: RunContext, spec: ModelSpec, fleet: Fleet) -> FlowResult[Release]:
    """Plan what deploying a model would run now."""
    submission = current_submission()
    fleet = await require_allowed(spec, fleet)
    await check_early(spec, fleet)
    source = ReleaseSource(spec, {})
    old, healthy = await serving(spec, fleet)
    if old and healthy and await source.is_served_by(old):
        return unchanged(old, await image_drift(old, fleet))
    release = await _plan(context, source, fleet, old, submission)
    await publish_plan(release, f"What deploying {spec.name} would run")
    return FlowResult("Completed", f"{release.id} would run", release)


async def plan_rollback(
    context: RunContext, name: str, to: str, fleet: Fleet
) -> FlowResult[Release]:
    """Plan what rolling back a model would run."""
    fleet = await settled_fleet(fleet)
    source, old, _ = await rollback_source(name, to, fleet)
    fleet = await require_allowed_again(source, fleet)
    release = await _plan(context, source, fleet, old)
    await publish_plan(release, f"What deploying {name} would run")
    message = f"{release.id} would run what {release.rolled_back_to} ran"
    return FlowResult("Completed", message, release)


async def plan_reconcile(_: RunContext, fleet: Fleet) -> FlowResult[tuple[ActionOutcome, ...]]:
    """List the actions that reconciling would carry out."""
    cluster = await observe_fleet(await settled_fleet(fleet), keep=False)
    why = "not done: dry run"
    outcomes = [ActionOutcome(action=one, done=False, summary=why) for one in decide(cluster)]
    return reconciled(cluster, tuple(outcomes))


async def plan_redeployment(
    _: RunContext, selection: Selection, fleet: Fleet
) -> FlowResult[list[Redeployed]]:
    """List what redeploying would do with each selected model."""
    fleet = await settled_fleet(fleet, selection.files)
    found = await find_intents(selection, fleet)
    ended = would_be(found)
    return FlowResult("Failed" if is_failure(ended) else "Completed", summary(ended), ended)


async def require_approval(
    context: RunContext, spec: ModelSpec, fleet: Fleet, *, force: bool
) -> str:
    """Wait until the deploy is approved; returns the approval, empty if it needs none.

    Returns at once where it needs none, changes nothing, or was approved in an outer flow.

    Plans without the lock of the model's name, so that no other flow waits for a person. The deploy
    plans again after the approval.

    Raises:
        Failure: When nobody approved, or the model cannot be deployed at all.
    """
    if given := given_approval(spec.name):
        return given
    if not await needs_approval(spec):
        return ""
    with separate_journal() as journal, allowed_scope(fleet):
        apart = RunContext(journal, context.flow_run_id, context.begun)
        planned = await plan_deploy(apart, spec, fleet)
    idle = planned.name == "Unchanged"
    if idle and not force:
        return ""
    page = await approval_page(spec, planned.result, unchanged=idle)
    question = Question(models=(spec.name,), plan=page, seconds=spec.redeploy.approval_seconds)
    return await ask(question)


async def rollback_source(
    name: str, to: str, fleet: Fleet
) -> tuple[ReleaseSource, ReleaseRow | None, bool]:
    """The source of the release to go back to, the release that serves, and whether it is healthy.

    The new release keeps `applied_from` of the serving one, so that the next `apply` reports the
    rollback.
    """
    rows = await in_thread(ledger().releases.of_model, name)
    target = rollback_target(name, rows, to)
    old, healthy = await serving(target.spec, fleet)
    owner = old.release.applied_from if old and old.release else target.applied_from
    facts = {"applied_from": owner, "submission": target.submission, "rolled_back_to": target.id}
    return ReleaseSource(target.spec, facts, target), old, healthy


async def require_allowed_again(source: ReleaseSource, fleet: Fleet) -> Fleet:
    """Check the policy for an earlier spec, for the channel through which it was submitted."""
    submission: Submission = source.facts["submission"]
    with recorded_scope(submission, fleet):
        return await require_allowed(source.spec, fleet)


def unchanged(old: ReleaseRow, drift: str = "") -> FlowResult[Release]:
    """The result of a run that changes nothing, with a note on image drift."""
    assert old.release, "what serves a spec has a record"
    message = f"unchanged: {old.id} already serves this spec at this revision"
    return FlowResult("Unchanged", f"{message}; {drift}" if drift else message, old.release)


def would_be(found: Sequence[Intent]) -> list[Redeployed]:
    """The outcomes that a dry run shows for models, those to deploy first."""
    todo = [one.if_it_were_done for one in found if one.action == OnDrift.REDEPLOY]
    return [*todo, *(one.as_it_is for one in found if one.action != OnDrift.REDEPLOY)]


def reconciled(
    cluster: ClusterState, outcomes: tuple[ActionOutcome, ...]
) -> FlowResult[tuple[ActionOutcome, ...]]:
    """The result of a reconcile."""
    name = "Completed" if changing(outcomes) else "Unchanged"
    return FlowResult(name, reconcile_summary(cluster, outcomes), outcomes)


async def _plan(
    context: RunContext,
    source: ReleaseSource,
    fleet: Fleet,
    old: ReleaseRow | None,
    submission: Submission | None = None,
) -> Release:
    """Draft the release that would run; with a submission, check the policy's size limits."""
    spec, target, run = source.spec, source.target, context.flow_run_id
    look = partial(survey_without_abandoned, fleet, spec)
    analyzed = await source.resolve_and_derive(look, replaceable(old))
    snapshot = await look()
    placement = await dry_place(analyzed, snapshot, replaceable(old), target)
    if submission:
        await require_allowed_size(spec, placement, submission)
    identity = await next_id(spec.name)
    placed = analyzed.placed(placement, snapshot, identity)
    checked = await check_placed(placed, target)
    image = target.image if target else await choose_image(placed)
    plan = plan_release(placed, image, checked, target)
    plan = plan.with_warnings(await lacking_room(placed))
    plan = plan.with_warnings(await in_thread(lacking_image_room, placed, image))
    record = Release.begun(identity, spec, run, context.begun, old, **source.facts)
    draft = ReleaseDraft(record, context.journal, old)
    draft.add_analysis(analyzed)
    draft.finish(placement=placement, image=image, plan=plan)
    return draft.release
