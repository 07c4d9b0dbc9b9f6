"""Deploy a model: from a spec to an engine that answers, and a record of why.

Resolve, derive, survey, place, image and stage, plan, launch, verify, release:
`ReleaseRollout.run` names these steps in this order.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import FlowContext, flow_context, unchanged
from flows.plan_model import FreshPlan
from flows.require_approval import require_approval
from flows.result_recovery import keep_result
from flows.start_replicas import start_replicas
from moorage.common.failures import Cause, Failure
from moorage.common.saga import Saga
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.claims import Claim as HostClaim
from moorage.inventory.fleet import Fleet
from moorage.placement.placement import Analyzed, Placed
from moorage.releases.release import Release, ReleaseRow, ReleaseState
from moorage.releases.requester import Claim
from moorage.spec import ModelSpec
from tasks.accelerator_start_lock import AcceleratorStartLock
from tasks.adapters import tidy
from tasks.cleanup import abandon, free_claims, replaceable, sole_flow
from tasks.compare import serving, superseded_since
from tasks.context import in_thread, ledger, run_shielded, settings
from tasks.image import image_drift
from tasks.map_hosts import gather_all, task_runner
from tasks.measure import measure, read_facts, record_measurements
from tasks.plan import check_early
from tasks.policy import current_submission, require_allowed, require_allowed_size
from tasks.release import announcement, publish, publish_plan, replacement_summary
from tasks.release_lifecycle import ReleaseDraft, close_on_failure
from tasks.restore_release import undo_stop
from tasks.stage import make_caches, stage
from tasks.stopping import end_superseded, finish_switch, stop_for
from tasks.survey import survey
from tasks.undo_fetch import before_fetching

PORT_ATTEMPTS = 3


@flow(
    name="deploy-model",
    flow_run_name="deploy {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
@keep_result
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
    async with flow_context(spec.name, requested_by) as context:
        submission = current_submission()
        fleet = await require_allowed(spec, fleet, applied_from)
        await check_early(spec, fleet)
        await require_approval(spec, fleet, force=force)
        async with sole_flow(spec.name, context.flow_run_id, context.journal):
            if reason := await in_thread(superseded_since, spec.name):
                return Completed(name="Unchanged", message=f"unchanged: {reason}")
            old, healthy = await serving(spec, fleet.avoided_hosts)
            source = FreshPlan(spec, applied_from=applied_from, submission=submission)
            if old and healthy and old.spec_digest == spec.digest and not force:
                # Only the model itself can have changed; where it did not, no release is begun.
                model = (await source.resolve_and_derive()).model
                if old.is_of(spec, model.revision, model.pins):
                    await in_thread(ledger().releases.revise, old, spec)
                    return unchanged(old, await image_drift(old, fleet))
            release = await roll_out(context, source, fleet, old)
    return Completed(message=announcement(release), data=release)


async def roll_out(
    context: FlowContext, source: FreshPlan, fleet: Fleet, old: ReleaseRow | None
) -> Release:
    """Make a release, prove that it answers, and let it take over.

    A stranger may take a port that was ours to choose before the engine binds it: then another
    port is tried.

    Raises:
        Failure: When it could not be made; then what served before serves (again).
    """
    refused = tuple[HostClaim, ...]()
    for _ in range(PORT_ATTEMPTS - 1):
        rollout = ReleaseRollout(context, source, fleet, old, refused)
        try:
            return await rollout.run()
        except Failure as failure:
            if failure.cause != Cause.PORT_TAKEN or source.spec.port != "auto":
                raise
            refused += rollout.claims
            context.journal.tell(f"{failure}; trying another port")
    return await ReleaseRollout(context, source, fleet, old, refused).run()


class ReleaseRollout:
    """Makes a release once: whatever fails, nothing is left claimed or running.

    Each step arms its undos in the saga before its effects, and adds what it found to the draft
    of the record.

    Args:
        context: The flow run that makes it.
        source: Plans it; several attempts share what it knows of the model.
        fleet: The hosts it may run on.
        old: The release that it replaces; None = nothing serves.
        refused: Claims of earlier attempts that failed because one of their ports was taken.
    """

    def __init__(
        self,
        context: FlowContext,
        source: FreshPlan,
        fleet: Fleet,
        old: ReleaseRow | None,
        refused: tuple[HostClaim, ...] = (),
    ) -> None:
        self._context, self._source, self._fleet = context, source, fleet
        self._old, self._refused = old, refused
        self._draft = ReleaseDraft(context.journal, old)

    @property
    def claims(self) -> tuple[HostClaim, ...]:
        """What it has claimed, also after it failed."""
        placement = self._draft.release.placement
        return placement.claims if placement else ()

    async def run(self) -> Release:
        """Take the steps of a deploy in order.

        Raises:
            Failure: When it could not be made; then what served before serves (again).
        """
        context, old = self._context, self._old
        facts = {**self._source.facts, "requester": context.requester}
        context.release = await self._draft.begin(self._source.spec, context.flow_run_id, facts)
        try:
            with (
                Saga(context.undone, run_shielded) as saga,
                close_on_failure(context.release, old, context.journal),
            ):
                analyzed = await self._resolve_and_derive()
                placed = await self._survey_and_place(saga, analyzed)
                notes = await self._source.check(placed)
                image, placed = await self._image_and_stage(saga, placed)
                plan = await self._plan(placed, image, notes)
                lock = await self._make_room(saga, placed)
                await self._launch_and_verify(saga, placed, plan)
                release = await self._release(saga, placed)
        except Exception as error:
            if (failure := context.failure_of(error)) is None:
                raise
            await self._draft.fail(error, failure)
            raise failure from None
        await self._end_old(release, lock)
        return release

    async def _resolve_and_derive(self) -> Analyzed:
        """Find out what the model is; the release is `analyzing` meanwhile, unless it is known."""
        if self._source.analyzed is None:
            await self._draft.enter(ReleaseState.ANALYZING)
        analyzed = await self._source.resolve_and_derive()
        await self._draft.pin(analyzed)
        return analyzed

    async def _survey_and_place(self, saga: Saga, analyzed: Analyzed) -> Placed:
        """Look at the fleet, and claim a place in it."""
        surveyed = await survey(self._fleet, self._source.spec.placement.cluster)
        snapshot = surveyed.with_ports_in_use(self._refused)
        release, old = self._draft.release, self._old
        saga.arm("free the claims", free_claims, release.id, old)
        placed = await self._source.place(
            analyzed, self._fleet, snapshot, release.id, replaceable(old)
        )
        self._draft.add(placement=placed.placement)
        await require_allowed_size(placed.spec, placed.placement, release.submission)
        return placed

    async def _image_and_stage(self, saga: Saga, placed: Placed) -> tuple[Image | None, Placed]:
        """Have image and weights on every placed host, side by side."""
        await self._arm_fetching(saga, placed)
        await self._draft.enter(ReleaseState.DOWNLOADING)
        # Where a failure removes what was fetched, it waits until nothing is fetched any more.
        both = asyncio.gather if settings().keep_fetched else gather_all
        image, model = await both(self._source.pull_image(placed), stage(placed))
        return image, replace(placed, model=model)

    async def _arm_fetching(self, saga: Saga, placed: Placed) -> None:
        if not settings().keep_fetched:
            before = await in_thread(before_fetching, placed, self._fleet)
            saga.arm("remove what was fetched", before.remove)
        if placed.model.updates_folder:
            saga.arm("remove the folder of its adapters", tidy, placed.spec.name)

    async def _plan(
        self, placed: Placed, image: Image | None, notes: tuple[str, ...]
    ) -> LaunchPlan:
        """Work out and show exactly what will run."""
        plan = self._source.plan(placed, image, notes)
        self._draft.add(image=image, plan=plan)
        await publish_plan(self._draft.release, f"What {self._draft.release.id} runs")
        await make_caches(plan, placed.snapshot)
        return plan

    async def _make_room(self, saga: Saga, placed: Placed) -> AcceleratorStartLock:
        """Wait until nobody else starts on its accelerators, and stop what has to make room."""
        release, old, placement = self._draft.release.id, self._old, placed.placement
        lock = AcceleratorStartLock(release, placed.spec.name, placement, old)
        if lock.names:
            saga.arm("let others start there", lock.release)
            await lock.acquire(placed.spec.readiness.deadlines, self._context.journal)
        if old and placement.stop_first:
            saga.arm(f"start {old.id} again", undo_stop, old, release)
            await stop_for(old, release)
        return lock

    async def _launch_and_verify(self, saga: Saga, placed: Placed, plan: LaunchPlan) -> None:
        """Start its parts one after the other, each verified before the next."""
        saga.arm("stop what was started", abandon, self._draft.release.id)
        before = self._old.release if self._old else None
        draft = self._draft.release
        async for further in start_replicas(draft, plan, placed.profile, before):
            self._draft.release = further

    async def _release(self, saga: Saga, placed: Placed) -> Release:
        """Record what was measured, and make it the release that serves."""
        draft, old = self._draft, self._old
        plan, workloads = draft.release.plan, draft.release.workloads
        assert plan, "what has started was planned"
        predicted = placed.placement.predicted
        measured = await measure(placed.profile, plan, workloads, placed.snapshot, predicted)
        facts = await read_facts(plan, measured)
        how = replacement_summary(draft.release, old)
        draft.finish(measured=measured, facts=facts, replacement=how)
        if old:
            journal = self._context.journal
            saga.arm("end what it has replaced", finish_switch, old, draft.release.id, journal)
        return await publish(draft.release)

    async def _end_old(self, release: Release, lock: AcceleratorStartLock) -> None:
        journal, linger = self._context.journal, release.spec.replace.linger_seconds
        try:
            if self._old:
                await end_superseded(self._old, journal, linger)
        finally:
            # The new release serves, whatever signal arrives now.
            run_shielded(lock.release)
            run_shielded(lambda: record_measurements(release, journal))
