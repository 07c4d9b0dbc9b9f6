"""Reconcile the fleet: repair each difference between the ledger and the hosts."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.dry_run import plan_reconcile, reconciled
from flows.flow_context import (
    NO_RESULT,
    FlowContext,
    ending,
    flow_context,
    keep_result,
    with_result,
)
from flows.subflows import deployment, exit_code_of_run
from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.system.threads import in_thread
from moorage.common.units import counted
from moorage.inventory.fleet import Avoided, Fleet
from moorage.operations.reconcile.actions import QUIET, Action, ActionKind, ActionOutcome
from moorage.operations.reconcile.cluster_state import ClusterState
from moorage.operations.reconcile.decisions import decide
from moorage.releases.release import Release
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.reports.operations_report import (
    RECONCILE_COLUMNS,
    changing,
    hosts_table,
    reconcile_rows,
    reconcile_summary,
)
from tasks.artifacts import show_table
from tasks.compare import decision_scope
from tasks.context import ledger
from tasks.observe_fleet import observe_fleet
from tasks.policy import granted_as_it_ran, recorded_scope, settled_fleet
from tasks.prefect_runs import (
    close_abandoned_questions,
    close_killed_runs,
    close_unreported_runs,
    remove_quiet_runs,
)
from tasks.repair import (
    count_replacement,
    fetch_images,
    forget_hosts,
    record_run,
    repair,
    revive_gateways,
    sole_reconciler,
)
from tasks.restore_image import registries_scope
from tasks.schedules import restore_schedules

Round = tuple[ClusterState, tuple[ActionOutcome, ...]]
"""What a round of reconciling saw and did."""

SHOWN = timedelta(minutes=10)
"""How long Prefect shows a scheduled run that changed nothing."""


@flow(name="reconcile-fleet", flow_run_name="reconcile", **NO_RESULT)
@keep_result
async def reconcile_fleet(
    fleet: FleetParameter = THIS_MACHINE, dry_run: bool = False, requested_by: Claim = ""
) -> State[tuple[ActionOutcome, ...]]:
    """Adopt, finish, undo, restart, replace and remove until ledger and hosts agree.

    Only one runs at a time: a second one ends at once. Models that another flow is changing are
    left alone.

    Args:
        fleet: Hosts to observe, on which models may be placed. Hosts with claims are always
            observed.
        dry_run: Only show the actions.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context("fleet", requested_by) as context:
        if dry_run:
            return ending(await plan_reconcile(context, fleet))
        fleet = await settled_fleet(fleet)
        try:
            cluster, outcomes = await _round(context, fleet)
        except LockHeld as held:
            return Completed(name="Skipped", message=f"skipped: {held.detail}", data=())
        if any(outcome.lacks_image for outcome in outcomes):
            cluster, outcomes = await _round_with_images(context, fleet, cluster, outcomes)
        await in_thread(record_run, outcomes)
        await _publish(cluster, outcomes)
        await remove_quiet_runs(cluster.now - SHOWN)
    return ending(reconciled(cluster, outcomes))


async def _round(context: FlowContext, fleet: Fleet) -> Round:
    """Repair what is wrong now; raises `LockHeld` when another reconcile does."""
    cluster, actions, outcomes = await _observe_and_repair(context, fleet)
    # Deploys run outside the lock: they take as long as a model loads, and lock only the model.
    moves = (action for action in actions if action.kind == ActionKind.REPLACE)
    moved = [await _replace(action, fleet) for action in moves]
    lost = (_as_deploy(outcome) for outcome in outcomes if outcome.needs_deploy)
    placed = [await _replace(action, fleet, in_place=True) for action in lost]
    return cluster, (*outcomes, *moved, *placed)


async def _round_with_images(
    context: FlowContext, fleet: Fleet, cluster: ClusterState, outcomes: Sequence[ActionOutcome]
) -> Round:
    """Pull the images that restarts lacked, then repair once more.

    The pull is outside the lock: later reconciles repair other models meanwhile, however long it
    takes. Returns what both rounds did.
    """
    with registries_scope(fleet.registries):
        pulled = await fetch_images([one for one in outcomes if one.lacks_image])
    others = [one for one in outcomes if not one.lacks_image]
    failed = [one for one in pulled if one.cause]
    if len(failed) < len(pulled):
        with suppress(LockHeld):  # then a later reconcile, which has the lock, starts them
            cluster, more = await _round(context, fleet)
            acted = (one for one in others if one.action.kind not in QUIET)
            return cluster, (*acted, *failed, *more)
    return cluster, (*others, *pulled)


async def _observe_and_repair(
    context: FlowContext, fleet: Fleet
) -> tuple[ClusterState, tuple[Action, ...], tuple[ActionOutcome, ...]]:
    note = f"flow run {context.flow_run_id}"
    async with sole_reconciler(note):
        cluster = await observe_fleet(fleet)
        actions = decide(cluster)
        with registries_scope(fleet.registries):
            outcomes = await repair(actions, f"reconcile, {note}")
        await close_killed_runs(outcomes)
        orphan = timedelta(seconds=cluster.patience.orphan_seconds)
        await close_unreported_runs(cluster.now - orphan)
        await close_abandoned_questions()
        await in_thread(ledger().repairs.tidy)
        await in_thread(revive_gateways)
        await in_thread(forget_hosts, fleet, cluster)
        await restore_schedules()
    waits = (action for action in actions if action.kind == ActionKind.WAIT)
    not_yet = (ActionOutcome(action=one, done=False, summary="not yet") for one in waits)
    return cluster, actions, (*outcomes, *not_yet)


def _as_deploy(restart: ActionOutcome) -> Action:
    """The deploy in place of a restart that lacked files or a GPU: only a deploy finds others."""
    reason = f"its place is gone: {restart.summary}"
    return restart.action.model_copy(update={"kind": ActionKind.REPLACE, "reason": reason})


async def _replace(action: Action, fleet: Fleet, *, in_place: bool = False) -> ActionOutcome:
    """Deploy a model again as it ran; the new release supersedes the old one.

    With `in_place` where it was; elsewhere only if its spec lets it move. Where it cannot run so
    any more, it is deployed afresh if its spec takes by itself what has moved.
    """
    release = await in_thread(count_replacement, action)
    if release is None:
        return ActionOutcome(action=action, done=False, summary="it was moved by now")
    avoid = _other_hosts(release, fleet) if in_place else action.avoid
    hosts = fleet.model_copy(update={"avoid": (*fleet.avoid, *avoid)})
    begin = deployment(release.spec, hosts, release.applied_from)
    # If it asked, no model would be reconciled while a person thinks.
    ways: list[AbstractContextManager[None]] = [granted_as_it_ran(release)]
    if not in_place and release.follows_its_source:
        ways.append(nullcontext())
    for way in ways:
        decided = decision_scope(release.id, spares=action.spares)
        with decided, recorded_scope(release.submission, hosts), way:
            state = with_result(await begin())
        if state.is_completed():
            break
    if not state.is_completed():
        code, why = await exit_code_of_run(state), f"failed: {state.message}"
        return ActionOutcome(action=action, done=False, summary=why, exit_code=code)
    return ActionOutcome(action=action, summary=state.message or "")


def _other_hosts(release: Release, fleet: Fleet) -> tuple[Avoided, ...]:
    """All hosts but its own, for a release that is not to move."""
    if release.spec.restart.elsewhere or not release.placement:
        return ()
    own = {seat.host for seat in release.placement.seats}
    reason = f"{release.id} stays where it was"
    others = (host.name for host in fleet.hosts if host.name not in own)
    return tuple(Avoided(host=name, reason=reason) for name in others)


async def _publish(cluster: ClusterState, outcomes: Sequence[ActionOutcome]) -> None:
    hosts = counted(len({one.place.host for one in cluster.observations}), "host")
    # One a minute with the same rows would fill Prefect's database. So its description must be
    # about these rows alone: it stays as long as they do.
    await show_table("reconcile-hosts", hosts_table(cluster), f"{hosts} surveyed", if_changed=True)
    rows = reconcile_rows(changing(outcomes))
    if rows:
        table = [dict(zip(RECONCILE_COLUMNS, row, strict=True)) for row in rows]
        await show_table("reconcile", table, reconcile_summary(cluster, outcomes))
