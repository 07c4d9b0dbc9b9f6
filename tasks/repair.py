"""Step repair: carry out the decisions of reconciling, each model under its lock, concurrently."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta

from moorage.adapters.gateway.followed_routes import revive_services
from moorage.adapters.hosts.runtime import remove_workload
from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.system.threads import hold_lock, in_thread
from moorage.common.failures import Failure
from moorage.inventory.access import machine_of
from moorage.inventory.fleet import Fleet
from moorage.operations.reconcile.actions import (
    WAITS,
    Action,
    ActionKind,
    ActionOutcome,
    not_before,
)
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    ReleaseStatus,
    planned_workloads,
)
from moorage.operations.reconcile.counts import counts_of
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow, claims_of
from moorage.releases.states import SERVING, ReleaseState
from tasks.cleanup import bring_back, made_room, recover
from tasks.compare import mark
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.probe import probe
from tasks.replace import stop_sleeper
from tasks.restart import ImageAbsent, fetch_image, restart
from tasks.start_lease import lease_of
from tasks.workloads import ABORT_SECONDS, stop

AT_ONCE = 16
"""Models that are repaired at the same time."""

WITHOUT_LOCK = {ActionKind.PROBE, ActionKind.FORGET}
"""Actions that change no workload; without the lock, they do not delay a deploy."""

ELSEWHERE = {ActionKind.WAIT, ActionKind.REPLACE}
"""Actions not carried out here: waiting, and replacing, which is a separate deploy."""

LOCK = "reconcile:fleet"
"""Name of the lock of reconciling, to which a site adds its own; no model can have it."""


@flow_task("repair", "repair")
async def repair(actions: Sequence[Action], note: str) -> tuple[ActionOutcome, ...]:
    """Carry out actions, those of one model in order; returns the outcome of each.

    A failed action is recorded and does not stop the others. Flows that wait for a model's lock see
    the note.
    """
    with step("repair") as summary:
        models: dict[str, list[Action]] = {}
        for action in actions:
            if action.kind not in ELSEWHERE:
                models.setdefault(action.model or action.about, []).append(action)
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(model: str, own: list[Action]) -> list[ActionOutcome]:
            async with limit:
                return await in_thread(_repair_model, model, own, note)

        done = await asyncio.gather(*(one(model, own) for model, own in models.items()))
        outcomes = tuple(outcome for own in done for outcome in own)
        summary.say(f"{sum(outcome.done for outcome in outcomes)} of {len(outcomes)} done")
        return outcomes


@flow_task("pull", "pull the images of restarts")
async def fetch_images(restarts: Sequence[ActionOutcome]) -> tuple[ActionOutcome, ...]:
    """Pull the images that restarts lack; an outcome without a cause succeeded."""
    with step("pull") as summary:
        limit = asyncio.Semaphore(settings().hosts_at_once)

        async def one(restart: ActionOutcome) -> ActionOutcome:
            async with limit:
                return await in_thread(_fetch, restart)

        outcomes = await asyncio.gather(*map(one, restarts))
        summary.say("; ".join(f"{one.action.about}: {one.summary}" for one in outcomes))
        return tuple(outcomes)


def _fetch(restart: ActionOutcome) -> ActionOutcome:
    action = restart.action
    try:
        summary = fetch_image(action, frozenset(restart.lacks_image))
        return ActionOutcome(action=action, done=False, summary=summary)
    except LockHeld as held:
        return ActionOutcome(action=action, done=False, summary=str(held), cause=held.cause)
    except Failure as failure:
        return _failed(action, failure)


def _repair_model(model: str, actions: list[Action], note: str) -> list[ActionOutcome]:
    acting = [action for action in actions if action.kind not in WITHOUT_LOCK]
    outcomes = []
    if acting:
        try:
            with ledger().locks.holding(model, wait_seconds=0, note=note):
                outcomes = [_carry_out(action) for action in acting]
        except LockHeld as held:
            outcomes = [ActionOutcome(action=one, done=False, summary=str(held)) for one in acting]
        except Failure as failure:
            outcomes = [_failed(one, failure) for one in acting]
    return outcomes + [_carry_out(action) for action in actions if action.kind in WITHOUT_LOCK]


def _carry_out(action: Action) -> ActionOutcome:
    try:
        if action.kind == ActionKind.REMOVE:
            return ActionOutcome(action=action, summary=_remove(action))
        row = ledger().releases.get(action.release)
        if row.state != action.state:
            return ActionOutcome(action=action, done=False, summary=f"it is {row.state} by now")
        summary = REPAIRS[action.kind](action, row)
        return ActionOutcome(action=action, summary=summary or "")
    except ImageAbsent as absent:
        why = "its image is pulled first"
        return ActionOutcome(action=action, done=False, summary=why, lacks_image=absent.replicas)
    except Failure as failure:
        return _failed(action, failure)


def _failed(action: Action, failure: Failure) -> ActionOutcome:
    return ActionOutcome(
        action=action,
        done=False,
        summary=f"failed: {failure}",
        cause=failure.cause,
        exit_code=0 if failure.cause in WAITS else int(failure.cause.exit_code),
    )


def _adopt(action: Action, row: ReleaseRow) -> str:
    # They were seen as the fleet of this run reaches them, which is not for the record.
    recorded = {one.name: one.address for one in (*planned_workloads(row), *row.workloads)}
    for workload in action.adopted:
        address = recorded.get(workload.name, workload.address)
        ledger().workloads.put(row.id, workload.model_copy(update={"address": address}))
    return f"{len(action.adopted)} written down"


def _give_up(action: Action, row: ReleaseRow) -> str:
    """Stop the workloads that are reachable; the others have no owner when they come back."""
    if row.state == ReleaseState.ASLEEP:
        stop_sleeper(row.model)
        return "it keeps only its ports; waking starts its engines again"
    left = []
    for workload in row.workloads:
        with suppress(Failure):
            stop(workload, ABORT_SECONDS)
            continue
        left.append(workload.name)
        ledger().workloads.drop(workload.name)
    if row.state in SERVING:
        ledger().releases.end(row.id, ReleaseState.ERROR, action.reason)
    else:
        # Its claims may include the place of the release that stopped for it and serves again.
        back = claims_of(made_room(row))
        ledger().releases.give_up(row.id, action.reason, *back)
        ledger().claims.hand_back(row.id, *back)
    with suppress(Failure):  # a lease that is not dropped expires
        ledger().locks.drop(lease_of(row.id))
    rest = f"; {', '.join(left)} could not be stopped" if left else ""
    return f"it holds nothing any more{rest}"


def _forget(_action: Action, row: ReleaseRow) -> None:
    record = ledger().repairs.of(row.id)
    well = {"attempts": 0, "elsewhere": 0, "not_before": None, "failure": "", "well_since": None}
    ledger().repairs.keep(record.model_copy(update=well))


def _remove(action: Action) -> str:
    """Remove a stray workload, unless a flow has come to own it: read the ledger under the lock."""
    stray, place = action.stray, action.place
    if stray is None or place is None:
        return ""
    if stray.release:
        with suppress(Failure):  # a release that the ledger does not know owns nothing
            row = ledger().releases.get(stray.release)
            if any(one.name == stray.name for one in row.workloads):
                return f"{row.id} owns it by now"
    remove_workload(place, stray, ledger().identity, settings())
    return "it is gone"


REPAIRS: dict[ActionKind, Callable[[Action, ReleaseRow], str | None]] = {
    ActionKind.UNDO: lambda _, row: recover(row),
    ActionKind.FINISH: lambda _, row: recover(row),
    ActionKind.BRING_BACK: bring_back,
    ActionKind.MARK_UNREACHABLE: (
        lambda action, row: mark(row, ReleaseState.UNREACHABLE, action.reason)
    ),
    ActionKind.MARK_REACHABLE: lambda _, row: mark(row, ReleaseState.RUNNING, "seen again"),
    ActionKind.ADOPT: _adopt,
    ActionKind.RESTART: restart,
    ActionKind.GIVE_UP: _give_up,
    ActionKind.PROBE: probe,
    ActionKind.FORGET: _forget,
}


def sole_reconciler(note: str) -> AbstractAsyncContextManager[None]:
    """Lock for being the only reconcile of this site; raises `LockHeld` with the other's note."""
    name = f"{LOCK}:{settings().site}" if settings().site else LOCK
    return hold_lock(ledger().locks.holding(name, wait_seconds=0, note=note))


def revive_gateways() -> None:
    """Restart this machine's gateway services that have ended; each repairs its own Envoy."""
    for name in revive_services(ledger(), settings().root):
        tell(f"the service of gateway {name} had ended and is started again")


def forget_hosts(fleet: Fleet, cluster: ClusterState) -> None:
    """Forget hosts that are gone: the fleet does not name them, and nothing of a release is there.

    They have been silent for as long as a lost host, or have another name in the fleet by now.
    Without a fleet each deploy names its own hosts, and none is forgotten.
    """
    if fleet == Fleet():
        return
    patience = timedelta(seconds=cluster.patience.lost_seconds)
    silent = {
        one.place.host
        for one in cluster.observations
        if one.unreachable_since and cluster.now - one.unreachable_since >= patience
    }
    machines = {host.access.machine for host in fleet.hosts if host.access.is_remote}
    known = ledger().unseen_hosts.known_hosts()
    renamed = {name for name, address in known.items() if machine_of(address) in machines}
    statuses = (ReleaseStatus(cluster, row) for row in cluster.releases)
    held = {one.host for status in statuses for one in status.workloads}
    gone = (silent | renamed) - held - {host.name for host in fleet.hosts}
    ledger().unseen_hosts.forget(gone)


def record_run(outcomes: Sequence[ActionOutcome]) -> None:
    """Count the outcomes of a reconcile that ends now, for monitoring."""
    counts = counts_of(outcomes, datetime.now(UTC), settings().site)
    ledger().reconcile_counts.add(counts)


def count_replacement(action: Action) -> Release | None:
    """Count a replacement before it is made; returns the release, None if its state has changed."""
    row = ledger().releases.get(action.release)
    if row.state != action.state or row.release is None:
        return None
    own, now = ledger().repairs, datetime.now(UTC)
    record = own.of(row.id)
    counted = {
        "elsewhere": record.elsewhere + 1,
        "not_before": not_before(now, record.attempts + record.elsewhere + 1),
        "failure": action.reason,
    }
    own.keep(record.model_copy(update=counted))
    return row.release
