"""What flows would do: their chains, up to the first effect that changes anything.

Flows show it as runs of their own. Commands call it as it is: no run, no server, no Prefect.
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
from moorage.releases.release_row import ReleaseRow, replaceable
from moorage.reports.operations_report import changing, reconcile_summary
from moorage.spec import Approval, ModelSpec, OnDrift
from moorage.spec.patterns import AUTO_FILES
from tasks.analyze import choose_files, derive, find_quantizations, lacking_room, resolve
from tasks.compare import serving
from tasks.context import ledger
from tasks.image import choose_image, image_drift
from tasks.journal import Journal, separate_journal
from tasks.observe_fleet import observe_fleet
from tasks.place import dry_place
from tasks.plan import check_early, check_placed, plan_release
from tasks.policy import (
    ask,
    current_submission,
    is_approved,
    recorded_scope,
    require_allowed,
    require_allowed_size,
    settled_fleet,
)
from tasks.redeploy_decisions import find_intents
from tasks.release import ReleaseDraft, approval_page, publish_plan
from tasks.survey import survey_without_abandoned


@dataclass
class RunContext:
    """A run of a chain: its journal, the id of its flow run (empty = none), and its begin."""

    journal: Journal
    flow_run_id: str
    begun: datetime


@dataclass
class ReleaseSource:
    """Where a release comes from: its spec, or an earlier release (`target`) that runs again.

    Facts are the fields of the record that say so.
    """

    spec: ModelSpec
    facts: dict[str, Any]
    target: Release | None = None
    analyzed: Analyzed | None = None

    async def resolve_and_derive(
        self, look: Callable[[], Awaitable[FleetSnapshot]], running: str
    ) -> Analyzed:
        """Resolve the model and derive its profile, once for all attempts of a flow run.

        An earlier release needs its recorded revisions; what was removed is staged again later.

        Args:
            look: Surveys the fleet, where that decides which files are taken.
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
        """Whether a release serves this spec at the revisions that its sources have now.

        Files that were chosen for it stay chosen as long as they are there.
        """
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
    """What deploying a model would run now, and why."""
    submission = current_submission()
    fleet = await require_allowed(spec, fleet)
    await check_early(spec, fleet)
    source = ReleaseSource(spec, {})
    old, healthy = await serving(spec)
    if old and healthy and await source.is_served_by(old):
        return unchanged(old, await image_drift(old, fleet))
    release = await _plan(context, source, fleet, old, submission)
    await publish_plan(release, f"What deploying {spec.name} would run")
    return FlowResult("Completed", f"{release.id} would run", release)


async def plan_rollback(
    context: RunContext, name: str, to: str, fleet: Fleet
) -> FlowResult[Release]:
    """What rolling back a model would run."""
    fleet = await settled_fleet(fleet)
    source, old, _ = await rollback_source(name, to)
    fleet = await require_allowed_again(source, fleet)
    release = await _plan(context, source, fleet, old)
    await publish_plan(release, f"What deploying {name} would run")
    message = f"{release.id} would run what {release.rolled_back_to} ran"
    return FlowResult("Completed", message, release)


async def plan_reconcile(_: RunContext, fleet: Fleet) -> FlowResult[tuple[ActionOutcome, ...]]:
    """What reconciling would do."""
    cluster = await observe_fleet(await settled_fleet(fleet), keep=False)
    why = "not done: dry run"
    outcomes = [ActionOutcome(action=one, done=False, summary=why) for one in decide(cluster)]
    return reconciled(cluster, tuple(outcomes))


async def plan_redeployment(
    _: RunContext, selection: Selection, fleet: Fleet
) -> FlowResult[list[Redeployed]]:
    """What redeploying would do with each model that is meant."""
    fleet = await settled_fleet(fleet, selection.files)
    found = await find_intents(selection, fleet)
    ended = would_be(found)
    return FlowResult("Failed" if is_failure(ended) else "Completed", summary(ended), ended)


async def require_approval(
    context: RunContext, spec: ModelSpec, fleet: Fleet, *, force: bool
) -> None:
    """Return once the deploy may begin: at once where no approval is needed, or nothing changes.

    The plan is made without the lock of the model's name, so that no other flow waits for a person.
    The deploy plans again after the approval.

    Raises:
        Failure: When nobody agreed, or the model cannot be deployed at all.
    """
    if spec.redeploy.approval != Approval.REQUIRED or is_approved(spec.name):
        return
    with separate_journal() as journal:
        apart = RunContext(journal, context.flow_run_id, context.begun)
        planned = await plan_deploy(apart, spec, fleet)
    idle = planned.name == "Unchanged"
    if idle and not force:
        return
    page = await approval_page(spec, planned.result, unchanged=idle)
    await ask(Question(models=(spec.name,), plan=page, seconds=spec.redeploy.approval_seconds))


async def rollback_source(name: str, to: str) -> tuple[ReleaseSource, ReleaseRow | None, bool]:
    """The release to go back to, the one that serves, and whether it really does.

    What is applied from files stays theirs: the next `apply` tells that it was rolled back.
    """
    rows = await in_thread(ledger().releases.of_model, name)
    target = rollback_target(name, rows, to)
    old, healthy = await serving(target.spec)
    owner = old.release.applied_from if old and old.release else target.applied_from
    facts = {"applied_from": owner, "submission": target.submission, "rolled_back_to": target.id}
    return ReleaseSource(target.spec, facts, target), old, healthy


async def require_allowed_again(source: ReleaseSource, fleet: Fleet) -> Fleet:
    """Judge an earlier spec by the channel through which it was submitted."""
    submission: Submission = source.facts["submission"]
    with recorded_scope(submission, fleet):
        return await require_allowed(source.spec, fleet)


def unchanged(old: ReleaseRow, drift: str = "") -> FlowResult[Release]:
    """The end of a run that has nothing to do, and what is worth knowing all the same."""
    assert old.release, "what serves a spec has a record"
    message = f"unchanged: {old.id} already serves this spec at this revision"
    return FlowResult("Unchanged", f"{message}; {drift}" if drift else message, old.release)


def would_be(found: Sequence[Intent]) -> list[Redeployed]:
    """What would become of models: first those that would be deployed."""
    todo = [one.if_it_were_done for one in found if one.action == OnDrift.REDEPLOY]
    return [*todo, *(one.as_it_is for one in found if one.action != OnDrift.REDEPLOY)]


def reconciled(
    cluster: ClusterState, outcomes: tuple[ActionOutcome, ...]
) -> FlowResult[tuple[ActionOutcome, ...]]:
    """The end of a reconciling."""
    name = "Completed" if changing(outcomes) else "Unchanged"
    return FlowResult(name, reconcile_summary(cluster, outcomes), outcomes)


async def _plan(
    context: RunContext,
    source: ReleaseSource,
    fleet: Fleet,
    old: ReleaseRow | None,
    submission: Submission | None = None,
) -> Release:
    """Record what would run; with a submission, its owner is held to the sizes of the policy."""
    draft, spec, target = ReleaseDraft(context.journal, old), source.spec, source.target
    look = partial(survey_without_abandoned, fleet, spec)
    analyzed = await source.resolve_and_derive(look, replaceable(old))
    snapshot = await look()
    placement = await dry_place(analyzed, snapshot, replaceable(old), target)
    if submission:
        await require_allowed_size(spec, placement, submission)
    identity = await draft.preview(spec, context.flow_run_id, context.begun, source.facts)
    placed = analyzed.placed(placement, snapshot, identity)
    checked = await check_placed(placed, target)
    image = target.image if target else await choose_image(placed)
    plan = plan_release(placed, image, checked, target)
    plan = plan.with_warnings(await lacking_room(placed))
    draft.add_analysis(analyzed)
    draft.finish(placement=placement, image=image, plan=plan)
    return draft.release
