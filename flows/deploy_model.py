"""Deploy a model: from a spec to an engine that answers, and a record of why."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.permission import permitted
from flows.recipe import Afresh, Recipe
from flows.replacing import announcement, downtime_of, how
from flows.starting import starting
from flows.story import Story, told, unchanged
from moorage.chain import Placed
from moorage.failures import Cause, Failure
from moorage.fleet import Fleet
from moorage.placement.propose import NoFit
from moorage.release import FailureRecord, Release, ReleaseRow, ReleaseState
from moorage.saga import Saga
from moorage.sites import at_site
from moorage.spec import ModelSpec
from tasks.adapters import tidy
from tasks.analysis import Analysis
from tasks.arguments import check_early
from tasks.cleanup import (
    abandon,
    free_claims,
    replaceable,
    sole_flow,
)
from tasks.come_back import start_again
from tasks.context import in_thread, ledger, settings, to_its_end
from tasks.facts import read_facts
from tasks.fetched import before_fetching
from tasks.image import moved
from tasks.keep import keep
from tasks.life import begin, closed, enter
from tasks.measure import measure, remember
from tasks.release import publish, serving
from tasks.runner import task_runner
from tasks.stage import stage
from tasks.stopping import end_superseded, finish_switch, stop_for
from tasks.survey import survey
from tasks.turns import Turn

PORT_ATTEMPTS = 3


@flow(
    name="deploy-model",
    flow_run_name="deploy {spec.name}",
    persist_result=False,
    task_runner=task_runner(),
)
async def deploy_model(
    spec: ModelSpec,
    fleet: Fleet = Fleet(),  # noqa: B008
    applied_from: str = "",
    force: bool = False,
) -> State[Release]:
    """Deploy a model so that it answers under its name.

    Deploying an identical spec again changes nothing. A changed one is started beside the release
    that serves, verified, and then takes over; when both do not fit, the old one stops first.

    Args:
        spec: The model as it is meant to be served. Only name and source are needed; the rest may
            stay as it is.
        fleet: The hosts it may run on; without it, this machine.
        applied_from: Set of files that it is applied from, for the record; empty = none.
        force: Replace what serves even where neither the spec nor the model has changed, such as by
            the image that its tag stands for now.
    """
    async with told(spec.name) as story:
        fleet = at_site(fleet, settings().site)
        await check_early(spec, fleet)
        await permitted(spec, fleet, force=force)
        async with sole_flow(spec.name, story.flow_run_id, story.journal):
            old, healthy = await serving(spec, fleet.avoided_hosts)
            analysis = Analysis(spec)
            if old and healthy and old.spec_digest == spec.digest and not force:
                # Only the model itself can have changed; where it did not, no release is begun.
                model = (await analysis.found()).model
                if old.is_of(spec, model.revision, model.pins):
                    await in_thread(ledger().releases.revise, old, spec)
                    return unchanged(old, await moved(old, fleet))
            recipe = Afresh(spec, {"applied_from": applied_from})
            release = await deploy_on_a_free_port(story, recipe, fleet, analysis, old)
    return Completed(message=announcement(release), data=release)


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
    spec = recipe.spec
    for _ in range(PORT_ATTEMPTS - 1):
        try:
            return await _deploy(story, recipe, fleet, analysis, old)
        except Failure as failure:
            if failure.cause != Cause.PORT_TAKEN or spec.port != "auto":
                raise
            story.journal.tell(f"{failure}; trying another port")
    return await _deploy(story, recipe, fleet, analysis, old)


async def _deploy(
    story: Story,
    recipe: Recipe,
    fleet: Fleet,
    analysis: Analysis,
    old: ReleaseRow | None,
) -> Release:
    """The chain with effects, as a saga: whatever fails, nothing is left claimed or running."""
    spec = recipe.spec
    draft = await _begin(story, recipe, old)
    try:
        with Saga(story.undone, to_its_end) as saga, closed(draft.id, old, story.journal):
            draft, analyzed = await analysis.of(draft)
            snapshot = await survey(fleet, spec.placement.cluster)
            saga.arm("free the claims", free_claims, draft.id, old)
            placed = await recipe.place(analyzed, fleet, snapshot, draft.id, replaceable(old))
            placement, snapshot = placed.placement, placed.snapshot
            draft = draft.model_copy(update={"placement": placement})
            notes = await recipe.check(placed)
            await _arm_fetching(saga, placed, fleet)
            await enter(draft.id, ReleaseState.DOWNLOADING)
            image, model = await asyncio.gather(recipe.have_image(placed), stage(placed))
            plan = recipe.planned(replace(placed, model=model), image, notes)
            draft = draft.model_copy(update={"image": image, "plan": plan})
            await keep(plan, snapshot)
            turn = Turn(draft.id, spec.name, placement, old)
            if turn.names:
                saga.arm("let others start there", turn.end)
                await turn.wait(spec.readiness.deadlines, story.journal)
            if old and placement.stop_first:
                saga.arm(f"start {old.id} again", start_again, old, draft.id)
                await stop_for(old, draft.id)
            saga.arm("stop what was started", abandon, draft.id)
            async for further in starting(
                draft, plan, placed.profile, old.release if old else None
            ):
                draft = further
            plan = draft.plan or plan
            measured = await measure(
                placed.profile, plan, draft.workloads, snapshot, placement.predicted
            )
            facts = await read_facts(plan, measured)
            release = _finished(
                draft, story, measured=measured, facts=facts, replacement=how(draft, old)
            )
            if old:
                saga.arm("end what it has replaced", finish_switch, old, draft.id, story.journal)
            release = await publish(release)
    except (Failure, TimeoutError) as error:
        failure = story.failure_of(error)
        if isinstance(error, NoFit):
            draft = draft.model_copy(update={"placement": error.placement})
        downtime = await in_thread(downtime_of, old, draft)
        record = _failed(draft.model_copy(update={"downtime_seconds": downtime}), story, failure)
        await in_thread(ledger().releases.fail, draft.id, failure.cause, record)
        raise failure from None
    try:
        if old:
            await end_superseded(old, story.journal, spec.replace.linger_seconds)
    finally:
        # The new release serves, whatever signal arrives now.
        to_its_end(turn.end)
        to_its_end(lambda: remember(release, story.journal))
    return release


async def _arm_fetching(saga: Saga, placed: Placed, fleet: Fleet) -> None:
    if not settings().keep_fetched:
        before = await in_thread(before_fetching, placed, fleet)
        saga.arm("remove what was fetched", before.remove)
    if placed.model.updates_folder:
        saga.arm("remove the folder of its adapters", tidy, placed.spec.name)


async def _begin(story: Story, recipe: Recipe, old: ReleaseRow | None) -> Release:
    begun, spec = datetime.now(UTC), recipe.spec
    story.release = await begin(spec, story.flow_run_id)
    return Release.begun(story.release, spec, story.flow_run_id, begun, old, **recipe.facts)


def _finished(draft: Release, story: Story, **changes: object) -> Release:
    ended = {"steps": tuple(story.journal.steps), "finished_at": datetime.now(UTC)}
    return draft.model_copy(update={**ended, **changes})


def _failed(draft: Release, story: Story, failure: Failure) -> Release:
    record = FailureRecord(
        cause=failure.cause,
        detail=failure.detail,
        suggestion=failure.suggestion,
        log_tail=failure.log_tail,
    )
    return _finished(draft, story, failure=record)
