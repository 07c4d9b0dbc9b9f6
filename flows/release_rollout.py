"""One attempt to make a release: the chain with effects, as a saga."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from flows.flow_context import Story
from flows.plan_source import Recipe
from flows.replacement_summary import downtime_of, how
from flows.start_replicas import starting
from moorage.common.failures import Cause, Failure
from moorage.common.saga import Saga
from moorage.engines.launch import LaunchPlan
from moorage.inventory.claims import Claim
from moorage.inventory.fleet import Fleet
from moorage.placement.placed import Placed
from moorage.placement.propose import NoFit
from moorage.releases.release import FailureRecord, Release, ReleaseRow, ReleaseState
from tasks.accelerator_start_lock import Turn
from tasks.adapters import tidy
from tasks.analysis import Analysis
from tasks.cleanup import abandon, free_claims, replaceable
from tasks.context import in_thread, ledger, settings, to_its_end
from tasks.map_hosts import every
from tasks.measure import measure, read_facts, remember
from tasks.policy import require_allowed_size
from tasks.release import publish, publish_plan
from tasks.release_lifecycle import begin, closed, enter
from tasks.restore_release import start_again
from tasks.stage import keep, stage
from tasks.stopping import end_superseded, finish_switch, stop_for
from tasks.survey import survey
from tasks.undo_fetch import before_fetching

PORT_ATTEMPTS = 3


async def deploy_on_a_free_port(
    story: Story,
    recipe: Recipe,
    fleet: Fleet,
    analysis: Analysis,
    old: ReleaseRow | None,
) -> Release:
    """Make a release as its recipe says, prove that it answers, and let it take over.

    A port that was ours to choose may be taken by a stranger before the engine binds it: then
    another one is tried.

    Raises:
        Failure: When it could not be made; then what served before serves (again).
    """
    spec, refused = recipe.spec, tuple[Claim, ...]()
    for _ in range(PORT_ATTEMPTS - 1):
        attempt = Attempt(story, recipe, fleet, analysis, old, refused)
        try:
            return await attempt.run()
        except Failure as failure:
            if failure.cause != Cause.PORT_TAKEN or spec.port != "auto":
                raise
            refused += attempt.claims
            story.journal.tell(f"{failure}; trying another port")
    return await Attempt(story, recipe, fleet, analysis, old, refused).run()


class Attempt:
    """Makes a release once: whatever fails, nothing is left claimed or running.

    Each phase arms its undos before its effects, and leaves the draft of the record further along.

    Args:
        story: The flow run that makes it.
        recipe: What it is made of.
        fleet: The hosts it may run on.
        analysis: Of its model, which several attempts share.
        old: The release that it replaces; None = nothing serves.
        refused: Claims of earlier attempts that failed because one of their ports was taken.
    """

    def __init__(
        self,
        story: Story,
        recipe: Recipe,
        fleet: Fleet,
        analysis: Analysis,
        old: ReleaseRow | None,
        refused: tuple[Claim, ...] = (),
    ) -> None:
        self._story, self._recipe, self._fleet = story, recipe, fleet
        self._analysis, self._old, self._refused = analysis, old, refused
        self._draft: Release

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What it has claimed, also after it failed."""
        return self._draft.placement.claims if self._draft.placement else ()

    async def run(self) -> Release:
        """Make it, prove that it answers, and let it take over.

        Raises:
            Failure: When it could not be made; then what served before serves (again).
        """
        self._draft = await self._begin()
        try:
            with (
                Saga(self._story.undone, to_its_end) as saga,
                closed(self._draft.id, self._old, self._story.journal),
            ):
                placed = await self._have_a_place(saga)
                plan = await self._have_a_plan(saga, placed)
                turn = await self._have_its_turn(saga, placed)
                await self._start(saga, placed, plan)
                release = await self._take_over(saga, placed)
        except Exception as error:
            if (failure := self._story.failure_of(error)) is None:
                raise
            raise await self._failed(error, failure) from None
        await self._end_old(release, turn)
        return release

    async def _begin(self) -> Release:
        begun, spec, run = datetime.now(UTC), self._recipe.spec, self._story.flow_run_id
        self._story.release = await begin(spec, run)
        facts = {**self._recipe.facts, "requester": self._story.requester}
        return Release.begun(self._story.release, spec, run, begun, self._old, **facts)

    async def _have_a_place(self, saga: Saga) -> Placed:
        """Find the model, and claim a place for it."""
        self._draft, analyzed = await self._analysis.of(self._draft)
        seen = await survey(self._fleet, self._recipe.spec.placement.cluster)
        snapshot = seen.with_ports_in_use(self._refused)
        saga.arm("free the claims", free_claims, self._draft.id, self._old)
        placed = await self._recipe.place(
            analyzed, self._fleet, snapshot, self._draft.id, replaceable(self._old)
        )
        self._know(placement=placed.placement)
        submission = self._draft.submission
        await require_allowed_size(placed.spec, placed.placement, submission)
        return placed

    async def _have_a_plan(self, saga: Saga, placed: Placed) -> LaunchPlan:
        """Have image and weights on every host, and with them exactly what will run."""
        notes = await self._recipe.check(placed)
        await self._arm_fetching(saga, placed)
        await enter(self._draft.id, ReleaseState.DOWNLOADING)
        # Where a failure removes what was fetched, it waits until nothing is fetched any more.
        both = asyncio.gather if settings().keep_fetched else every
        image, model = await both(self._recipe.have_image(placed), stage(placed))
        plan = self._recipe.planned(replace(placed, model=model), image, notes)
        self._know(image=image, plan=plan)
        await publish_plan(self._draft, f"What {self._draft.id} runs")
        await keep(plan, placed.snapshot)
        return plan

    async def _arm_fetching(self, saga: Saga, placed: Placed) -> None:
        if not settings().keep_fetched:
            before = await in_thread(before_fetching, placed, self._fleet)
            saga.arm("remove what was fetched", before.remove)
        if placed.model.updates_folder:
            saga.arm("remove the folder of its adapters", tidy, placed.spec.name)

    async def _have_its_turn(self, saga: Saga, placed: Placed) -> Turn:
        """Wait until nobody else starts there, and stop what has to make room."""
        old, placement = self._old, placed.placement
        turn = Turn(self._draft.id, placed.spec.name, placement, old)
        if turn.names:
            saga.arm("let others start there", turn.end)
            await turn.wait(placed.spec.readiness.deadlines, self._story.journal)
        if old and placement.stop_first:
            saga.arm(f"start {old.id} again", start_again, old, self._draft.id)
            await stop_for(old, self._draft.id)
        return turn

    async def _start(self, saga: Saga, placed: Placed, plan: LaunchPlan) -> None:
        saga.arm("stop what was started", abandon, self._draft.id)
        before = self._old.release if self._old else None
        async for further in starting(self._draft, plan, placed.profile, before):
            self._draft = further

    async def _take_over(self, saga: Saga, placed: Placed) -> Release:
        """Record what was found, and make it the one that serves."""
        draft = self._draft
        assert draft.plan, "what has started was planned"
        measured = await measure(
            placed.profile,
            draft.plan,
            draft.workloads,
            placed.snapshot,
            placed.placement.predicted,
        )
        facts = await read_facts(draft.plan, measured)
        old, journal = self._old, self._story.journal
        self._know(measured=measured, facts=facts, replacement=how(draft, old))
        self._end()
        if old:
            saga.arm("end what it has replaced", finish_switch, old, draft.id, journal)
        return await publish(self._draft)

    async def _failed(self, error: Exception, failure: Failure) -> Failure:
        """Keep why it failed."""
        if isinstance(error, NoFit):
            self._know(placement=error.placement)
        record = FailureRecord(
            cause=failure.cause,
            detail=failure.detail,
            suggestion=failure.suggestion,
            log_tail=failure.log_tail,
        )
        downtime = await in_thread(downtime_of, self._old, self._draft)
        self._know(downtime_seconds=downtime, failure=record)
        self._end()
        await in_thread(ledger().releases.fail, self._draft.id, failure.cause, self._draft)
        return failure

    async def _end_old(self, release: Release, turn: Turn) -> None:
        journal, linger = self._story.journal, release.spec.replace.linger_seconds
        try:
            if self._old:
                await end_superseded(self._old, journal, linger)
        finally:
            # The new release serves, whatever signal arrives now.
            to_its_end(turn.end)
            to_its_end(lambda: remember(release, journal))

    def _know(self, **found: object) -> None:
        self._draft = self._draft.model_copy(update=found)

    def _end(self) -> None:
        self._know(steps=tuple(self._story.journal.steps), finished_at=datetime.now(UTC))
