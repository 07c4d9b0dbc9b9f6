"""Deploy a model: from a spec to an engine that answers, with a record of the reasons.

Resolve, derive, survey, place, image and stage, plan, launch, verify, release:
`ReleaseRollout._take_steps` takes these steps in this order, each after arming its undos.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.dry_run import ReleaseSource, require_approval, unchanged
from flows.flow_context import NO_RESULT, FlowContext, ending, flow_context, keep_result
from moorage.adapters.prefect.task_runner import task_runner
from moorage.adapters.system.threads import run_shielded, run_uninterrupted
from moorage.common.failures import Cause, Failure, require_none
from moorage.common.saga import Saga
from moorage.engines.launch import LaunchPlan, split_off, start_groups
from moorage.engines.recovery import Correction, correction_for, with_correction
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.inventory.claims import Claim as HostClaim
from moorage.inventory.fleet import Fleet
from moorage.models.profile import ModelProfile
from moorage.placement.placement import Placed
from moorage.readiness.smoke_test import gate_failure
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.requester import Claim
from moorage.releases.states import ReleaseState
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter, SpecParameter
from tasks.acceptance import acceptance
from tasks.compare import needs_approval, replaceable, serving, sole_flow, superseded_since
from tasks.image import image_drift, pull_image
from tasks.journal import failure_of, tell
from tasks.launch import AcceleratorStartLock, correct, launch
from tasks.place import place
from tasks.plan import check_early, check_placed, plan_release
from tasks.policy import (
    approved_release,
    current_file_set,
    current_submission,
    require_allowed,
    require_allowed_size,
)
from tasks.release import (
    ReleaseDraft,
    announcement,
    begin_release,
    close_on_failure,
    publish,
    publish_plan,
    revise,
    set_schedule,
)
from tasks.replace import (
    abandon,
    end_superseded,
    finish_switch,
    free_claims,
    stop_for,
    stop_sleeper,
    undo_stop,
)
from tasks.smoke_test import canary, gate, is_canary
from tasks.stage import fetch, fetch_undos, make_caches, stage
from tasks.survey import survey
from tasks.verify import verify

PORT_ATTEMPTS = 3


@flow(
    name="deploy-model", flow_run_name="deploy {spec.name}", **NO_RESULT, task_runner=task_runner()
)
@keep_result
async def deploy_model(
    spec: SpecParameter,
    fleet: FleetParameter = THIS_MACHINE,
    force: bool = False,
    requested_by: Claim = "",
) -> State[Release]:
    """Deploy a model so that it answers under its name.

    Deploying an identical spec again changes nothing. With a changed spec, the new release starts
    while the old one serves, is verified, and takes over; if both do not fit, the old one stops
    first.

    Args:
        spec: The model to serve. Only name and source are required; all other fields have
            defaults.
        fleet: The hosts on which it may run. Default: the worker's fleet, else this machine.
        force: Replace the serving release even if neither the spec nor the model has changed, for
            example to use the image that its tag names now.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(spec.name, requested_by) as context:
        submission, file_set = current_submission(), current_file_set()
        target = approved_release()
        back_to = target.rolled_back_to if target else ""
        facts = {"applied_from": file_set, "submission": submission, "rolled_back_to": back_to}
        allowed = await require_allowed(spec, fleet, file_set)
        if target is None:  # what ran is not judged again
            await check_early(spec, allowed)
        while True:
            approval = await require_approval(context, spec, allowed, force=force)
            source = ReleaseSource(spec, {**facts, "approval": approval}, target)
            alone = sole_flow(spec.name, context.flow_run_id, fleet=allowed, replaces=True)
            async with alone:
                if approval:  # it may have taken days
                    allowed = await require_allowed(spec, fleet, file_set)
                if ended := await _deploy_alone(context, source, allowed, force=force):
                    return ended
            tell("something has changed since the plan: this deploy needs approval now")


async def _deploy_alone(
    context: FlowContext, source: ReleaseSource, fleet: Fleet, *, force: bool
) -> State[Release] | None:
    """Deploy while no other flow works on the model; None if that needs an approval by now."""
    spec = source.spec
    if reason := await superseded_since(spec.name):
        return Completed(name="Unchanged", message=f"unchanged: {reason}")
    old, healthy = await serving(spec, fleet)
    if old and healthy and not force and await source.is_served_by(old):
        await revise(old, spec)
        return ending(unchanged(old, await image_drift(old, fleet)))
    if not source.facts["approval"] and await needs_approval(spec):
        return None
    release = await roll_out(context, source, fleet, old)
    return Completed(message=announcement(release), data=release)


async def roll_out(
    context: FlowContext, source: ReleaseSource, fleet: Fleet, old: ReleaseRow | None
) -> Release:
    """Make a release, prove that it answers, and let it take over.

    Where that fails, the old one serves on, or again.

    If another process takes an automatic port before the engine binds it, tries another port.
    """
    refused, sleeper = tuple[HostClaim, ...](), None
    if old is None:
        sleeper = await run_uninterrupted(stop_sleeper, source.spec.name)
    for _ in range(PORT_ATTEMPTS - 1):
        rollout = ReleaseRollout(context, source, fleet, old, sleeper, refused)
        try:
            return await rollout.run()
        except Failure as failure:
            if failure.cause != Cause.PORT_TAKEN or source.spec.port != "auto":
                raise
            placement = rollout.draft.release.placement
            refused += placement.claims if placement else ()
            tell(f"{failure}; trying another port")
    return await ReleaseRollout(context, source, fleet, old, sleeper, refused).run()


@dataclass
class ReleaseRollout:
    """One attempt to make a release; if it fails, nothing of it stays claimed or running.

    The release replaces `old`, which serves, or `sleeper`, if any. Several attempts share the
    source's analysis of the model; `refused` are the claims of earlier attempts whose port was
    taken.
    """

    context: FlowContext
    source: ReleaseSource
    fleet: Fleet
    old: ReleaseRow | None
    sleeper: ReleaseRow | None = None
    refused: tuple[HostClaim, ...] = ()

    async def run(self) -> Release:
        """Take all steps; the old release ends once the new one serves."""
        context, spec, at = self.context, self.source.spec, datetime.now(UTC)
        run, facts = context.flow_run_id, {**self.source.facts, "requester": context.requester}
        context.release = await begin_release(spec, run)
        record = Release.begun(context.release, spec, run, at, self.old, **facts)
        draft = self.draft = ReleaseDraft(record, context.journal, self.old)
        try:
            with (
                Saga(context.undone, run_shielded) as saga,
                close_on_failure(context.release, self.old or self.sleeper),
            ):
                release, lock = await self._take_steps(saga)
        except Exception as error:
            if (failure := failure_of(error)) is None:
                raise
            await draft.fail(error, failure)
            raise failure from None
        try:
            if self.old:
                await end_superseded(self.old, release.spec.replace.linger_seconds)
        finally:
            # The new release serves already, so no signal may skip this.
            run_shielded(lock.release)
            run_shielded(draft.record_measurements)
        await set_schedule(release.spec, self.old)
        return release

    async def _take_steps(self, saga: Saga) -> tuple[Release, AcceleratorStartLock]:
        source, draft, fleet, old = self.source, self.draft, self.fleet, self.old
        target, running = source.target, replaceable(old)
        release = draft.release.id

        if source.analyzed is None:
            await draft.enter(ReleaseState.ANALYZING)
        look = partial(survey, fleet, source.spec.placement.cluster)
        analyzed = await source.resolve_and_derive(look, running)
        await draft.pin(analyzed)

        surveyed = await look()
        snapshot = surveyed.with_ports_in_use(self.refused)
        sleeper = self.sleeper.id if self.sleeper else ""
        saga.arm("free the claims", free_claims, release, old or self.sleeper)
        placed = await place(analyzed, fleet, snapshot, release, running, target, sleeper)
        draft.add(placement=placed.placement, hosts=placed.placement.hosts_in(fleet))
        await require_allowed_size(placed.spec, placed.placement, draft.release.submission)
        checked = await check_placed(placed, target)

        for label, undo in await fetch_undos(placed, fleet):
            saga.arm(label, undo)
        await draft.enter(ReleaseState.DOWNLOADING)
        image, model = await fetch(pull_image(placed, target), stage(placed))
        placed = replace(placed, model=model)

        plan = plan_release(placed, image, checked, target)
        draft.add(image=image, plan=plan)
        await publish_plan(draft.release, f"What {release} runs")
        await make_caches(plan, placed.snapshot)
        lock = await self._make_room(saga, placed)

        saga.arm("stop what was started", abandon, release)
        await start_replicas(draft, plan, placed.profile, old.release if old else None)
        await carry_load(draft, plan, placed, old)

        await draft.complete(placed)
        if old:
            saga.arm("end what it has replaced", finish_switch, old, release)
        return await publish(draft.release), lock

    async def _make_room(self, saga: Saga, placed: Placed) -> AcceleratorStartLock:
        release, old, placement = self.draft.release.id, self.old, placed.placement
        lock = AcceleratorStartLock(release, placed.spec.name, placement, old)
        if lock.names:
            saga.arm("let others start there", lock.release)
            await lock.acquire(placed.spec.readiness.deadlines)
        if old and placement.stop_first:
            saga.arm(f"start {old.id} again", undo_stop, old, release)
            await stop_for(old, release)
        return lock


async def start_replicas(
    draft: ReleaseDraft, plan: LaunchPlan, profile: ModelProfile, before: Release | None = None
) -> None:
    """Launch and verify a release, part by part; each passes the gate before the next starts.

    With a canary, a share of the replicas starts first and is watched before the rest starts. If an
    engine refuses a value and names one that works, its part and all later parts start with that.
    The draft records every part that is ready, even if a later part fails.

    Raises:
        Failure: Of the first try if nothing can be corrected, else of the second; `GATE_FAILED`.
    """
    spec, watched = draft.release.spec, is_canary(draft.release, before)
    first, rest = split_off(plan, spec.replace.canary_share if watched else 1)
    parts, later = [*start_groups(first), *start_groups(rest)], len(start_groups(rest))
    while parts:
        part = parts[0]
        try:
            workloads = await _launch_and_verify(draft, part, profile)
        except Failure as failure:
            if (correction := _correction(draft.release, plan, failure)) is None:
                raise
            await correct(part, correction)
            names = {spec.name for part in parts for spec in part.containers}
            plan = with_correction(plan, correction, names)
            parts = [with_correction(part, correction, names) for part in parts]
            draft.add(plan=plan, corrections=(correction,))
            continue
        parts = parts[1:]
        if spec.readiness.prompts:
            gates = await gate(spec, profile, part, workloads, before)
            draft.add(gate=(*draft.release.gate, *gates))
            require_none(gate_failure(gates))
        if watched and len(parts) == later:
            await canary(spec, profile, plan, draft.release.workloads)


async def carry_load(
    draft: ReleaseDraft, plan: LaunchPlan, placed: Placed, old: ReleaseRow | None
) -> None:
    """Put the spec's load on a release, and on the old release if that still serves.

    Raises `ACCEPTANCE_FAILED`. A rollback gets no load: its release has served before and is often
    urgent.
    """
    release, serves = draft.release, None if placed.placement.stop_first else old
    if not placed.spec.readiness.acceptance or release.rolled_back_to:
        return
    outcome = await acceptance(placed.spec, placed.profile, plan, release.workloads, serves)
    draft.add(acceptance=outcome)
    require_none(outcome.failure)


async def _launch_and_verify(
    draft: ReleaseDraft, part: LaunchPlan, profile: ModelProfile
) -> tuple[Workload, ...]:
    release, workloads = draft.release, await launch(part)
    ready = await verify(release.spec, profile, part, workloads, release.workloads)
    started = (*release.workloads, *workloads)
    draft.add(workloads=started, readiness=(*release.readiness, *ready))
    return workloads


def _correction(release: Release, plan: LaunchPlan, failure: Failure) -> Correction | None:
    """The change for a second try; None = it was already made, or nothing can be corrected."""
    if release.corrections or plan.on_cluster:
        return None
    seats = release.placement.seats if release.placement else ()
    need = next((seat.need for seat in seats if seat.need), None)
    remedy = ENGINES[plan.engine].remedy(failure, need)
    return correction_for(release.spec, failure.cause, failure.evidence, remedy)
