"""Reconcile the fleet: what the ledger says and what the hosts show are made one again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.deploy_model import deploy_model
from flows.flow_context import FlowContext, flow_context, keep_result, whole
from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.system.threads import in_thread
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.actions import Action, ActionKind, Outcome
from moorage.operations.reconcile.cluster_state import ClusterState
from moorage.operations.reconcile.decisions import decide
from moorage.releases.requester import Claim
from moorage.releases.states import UNFINISHED, ReleaseState
from moorage.reports.reconcile_report import changing, hosts_table, planned, summary, table
from tasks.artifacts import show_table
from tasks.compare import decision_scope
from tasks.context import ledger
from tasks.observe_fleet import observe_fleet
from tasks.policy import recorded_scope, settled_fleet
from tasks.prefect_runs import close_runs, end_runs, shown_as_running, unreported
from tasks.repair import count_replacement, narrow_fleet, repair, sole_reconciler

LEFT_BEHIND = {ActionKind.UNDO, ActionKind.FINISH, ActionKind.BRING_BACK}


@flow(name="reconcile-fleet", flow_run_name="reconcile", persist_result=False)
@keep_result
async def reconcile_fleet(
    fleet: Fleet = Fleet(),  # noqa: B008
    dry_run: bool = False,
    requested_by: Claim = "",
) -> State[tuple[Outcome, ...]]:
    """Adopt, finish, undo, restart, replace and remove until ledger and hosts agree.

    Two never run at once: the second ends at once. Models on which a flow works are left alone.

    Args:
        fleet: Hosts that are looked at, and on which models may be placed; hosts on which
            something is claimed are looked at in any case.
        dry_run: Say what would be done, and do nothing.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    async with flow_context("fleet", requested_by) as context:
        fleet = await settled_fleet(fleet)
        if dry_run:
            world = await observe_fleet(fleet, keep=False)
            return _ended(world, planned(decide(world)))
        try:
            async with sole_reconciler(f"flow run {context.flow_run_id}"):
                world, actions, outcomes = await _repaired(context, fleet)
        except LockHeld as held:
            return Completed(name="Skipped", message=f"skipped: {held.detail}", data=())
        # A deploy takes as long as its model loads, and holds its model: nobody waits for that.
        moved = [await _replaced(action, fleet) for action in actions if _moves(action)]
        outcomes = (*outcomes, *moved)
        await _publish(world, outcomes)
    return _ended(world, outcomes)


async def _repaired(
    context: FlowContext, fleet: Fleet
) -> tuple[ClusterState, tuple[Action, ...], tuple[Outcome, ...]]:
    world = await observe_fleet(fleet)
    actions = decide(world)
    outcomes = await repair(actions, f"reconcile, flow run {context.flow_run_id}")
    await close_runs(await in_thread(_gone, outcomes))
    since = world.now - timedelta(seconds=world.patience.orphan_seconds)
    await end_runs(await in_thread(_over, await shown_as_running(since), since))
    await in_thread(ledger().repairs.tidy)
    waiting = tuple(Outcome(action=one, done=False, summary="not yet") for one in _waits(actions))
    return world, actions, (*outcomes, *waiting)


async def _replaced(action: Action, fleet: Fleet) -> Outcome:
    """Deploy a model anew, elsewhere; the release before is superseded once the new one serves."""
    release = await in_thread(count_replacement, action)
    if release is None:
        return Outcome(action=action, done=False, summary="it was moved by now")
    hosts = narrow_fleet(fleet, action.avoid)
    with decision_scope(release.id), recorded_scope(release.submission, hosts):
        state = whole(await deploy_model(release.spec, hosts, return_state=True))
    if not state.is_completed():
        return Outcome(action=action, done=False, summary=f"failed: {state.message}")
    return Outcome(action=action, summary=state.message or "")


def _gone(outcomes: Sequence[Outcome]) -> list[str]:
    """Flow runs that left something behind: those who moved the releases last before us."""
    runs = []
    for one in outcomes:
        if one.done and one.action.deed in LEFT_BEHIND:
            runs.append(ledger().releases.get(one.action.release).flow_run_id)
            log = ledger().releases.transitions(one.action.release)
            runs += [made.flow_run_id for made in log if made.after == one.action.state]
    return runs


def _over(flow_runs: Sequence[str], since: datetime) -> dict[str, State]:
    """Runs that have ended: nobody works on their model, and it was not moved for a while."""
    ends = {}
    for run in flow_runs:
        rows = ledger().releases.moved_by(run)
        late = all(row.updated_at < since and row.state not in UNFINISHED for row in rows)
        if rows and late and not ledger().locks.holders([row.model for row in rows]):
            ends[run] = unreported(rows[-1].state != ReleaseState.ERROR)
    return ends


async def _publish(world: ClusterState, outcomes: Sequence[Outcome]) -> None:
    said = summary(world, outcomes)
    await show_table("reconcile-hosts", hosts_table(world), said)
    if acted := changing(outcomes):
        await show_table("reconcile", table(acted), said)


def _ended(world: ClusterState, outcomes: tuple[Outcome, ...]) -> State[tuple[Outcome, ...]]:
    name = None if changing(outcomes) else "Unchanged"
    return Completed(name=name, message=summary(world, outcomes), data=outcomes)


def _moves(action: Action) -> bool:
    return action.deed == ActionKind.REPLACE


def _waits(actions: Iterable[Action]) -> Iterable[Action]:
    return (action for action in actions if action.deed == ActionKind.WAIT)
