"""Roll back a model: an earlier release runs again, exactly as it was recorded."""

from __future__ import annotations

from functools import partial
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.dry_run import survey_cleaned_up, would_run
from flows.flow_context import Story, told
from flows.plan_source import Again
from flows.release_rollout import deploy_on_a_free_port
from flows.replacement_summary import announcement
from flows.result_recovery import remembered
from moorage.inventory.fleet import Fleet
from moorage.operations.history.pinned import pinned_spec, require_same
from moorage.operations.history.targets import rollback_target
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.requester import Claim
from moorage.spec import Name
from tasks.analysis import Analysis
from tasks.cleanup import replaceable, sole_flow
from tasks.compare import serving
from tasks.context import in_thread, ledger
from tasks.map_hosts import task_runner
from tasks.policy import recorded_scope, require_allowed, settled_fleet
from tasks.replay_release import planned_again, propose_where_it_was


@flow(
    name="rollback-model",
    flow_run_name="roll back {name}",
    persist_result=False,
    task_runner=task_runner(),
)
@remembered
async def rollback_model(
    name: Name,
    to: str = "",
    fleet: Fleet = Fleet(),  # noqa: B008
    dry_run: bool = False,
    requested_by: Claim = "",
) -> State[Release]:
    """Serve an earlier release of a model again: same revision, same image, same plan.

    It becomes a new release, which is started, verified and takes over as in any deploy. It runs
    where the earlier one ran; elsewhere only if that place is taken or gone.

    Args:
        name: Name of the model, as in its spec.
        to: The release to go back to, or how its id begins; empty = the last one before what serves
            now that ran.
        fleet: The hosts it may run on; without it, those of the worker, else this machine.
        dry_run: Say exactly what would run; nothing is claimed or started.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    async with told(name, requested_by) as story:
        fleet = await settled_fleet(fleet)
        if dry_run:
            release = await _dry(story, name, to, fleet)
            message = f"{release.id} would run what {release.rolled_back_to} ran"
            return Completed(message=message, data=release)
        async with sole_flow(name, story.flow_run_id, story.journal):
            target, old, healthy = await _target(name, to)
            fleet = await _allowed(target, fleet)
            if old and old.release and healthy and _runs(old.release, target):
                message = f"unchanged: {old.id} already serves what {target.id} ran"
                return Completed(name="Unchanged", message=message, data=old.release)
            recipe = Again(target, _facts(target, old))
            release = await deploy_on_a_free_port(story, recipe, fleet, _as_it_was(target), old)
    return Completed(message=f"{announcement(release)}, as {target.id} did", data=release)


async def _dry(story: Story, name: str, to: str, fleet: Fleet) -> Release:
    target, old, _ = await _target(name, to)
    fleet = await _allowed(target, fleet)
    analyzed = await _as_it_was(target).found()
    snapshot = await survey_cleaned_up(fleet, target.spec)
    placement = await propose_where_it_was(target, analyzed, snapshot, replaceable(old))
    identity = await in_thread(ledger().releases.next_id, name)
    placed = analyzed.placed(placement, snapshot, identity)
    plan = planned_again(target, placed, target.image)
    return await would_run(story, placed, target.image, plan, old, **_facts(target, old))


async def _allowed(target: Release, fleet: Fleet) -> Fleet:
    """Nobody brings a new spec: the one of before is judged by the door that it came in through."""
    with recorded_scope(target.submission, fleet):
        return await require_allowed(target.spec, fleet)


async def _target(name: str, to: str) -> tuple[Release, ReleaseRow | None, bool]:
    """The release to go back to, the one that serves, and whether it really does."""
    rows = await in_thread(ledger().releases.of_model, name)
    target = rollback_target(name, rows, to)
    return target, *await serving(target.spec)


def _as_it_was(target: Release) -> Analysis:
    """The model at its recorded revisions; staged again later, where it was removed."""
    return Analysis(target.spec, pinned_spec(target), partial(require_same, target))


def _runs(release: Release, target: Release) -> bool:
    return target.id in (release.id, release.rolled_back_to)


def _facts(target: Release, old: ReleaseRow | None) -> dict[str, Any]:
    """What is applied from files stays theirs: the next `apply` tells that it was rolled back."""
    owner = old.release.applied_from if old and old.release else target.applied_from
    came_from = {"rolled_back_to": target.id, "applied_from": owner}
    return {**came_from, "submission": target.submission}
