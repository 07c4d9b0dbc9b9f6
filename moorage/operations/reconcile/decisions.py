"""Decide the actions that bring ledger and hosts into agreement."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from moorage.common.units import human_seconds
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    Observation,
    ReleaseStatus,
    planned_workloads,
)
from moorage.operations.reconcile.observed_workload import ObservedWorkload
from moorage.placement.placement import CPU
from moorage.releases.release_row import successor_of
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState
from moorage.spec import WhenDead

HEALTHY_SECONDS = 300.0
"""How long a release must have answered before its failures are forgotten."""

MOVE_SECONDS = 7200.0
"""How long moving a release from an unreachable host is tried; reconciles may be an hour apart."""


def decide(cluster: ClusterState) -> tuple[Action, ...]:
    """The actions that bring ledger and hosts into agreement: by release, then strays.

    If all actions succeed, decisions after the second round only probe or wait.
    """
    statuses = (ReleaseStatus(cluster, own) for own in cluster.releases)
    actions = [action for status in statuses for action in release_actions(status)]
    restored = {action.release for action in actions if action.kind == ActionKind.BRING_BACK}
    # Restoring a release also undoes the successor for which it made room.
    undone = {successor_of(own) for own in cluster.releases if own.id in restored}
    kept = (one for one in actions if one.kind != ActionKind.UNDO or one.release not in undone)
    return (*kept, *stray_actions(cluster))


def release_actions(status: ReleaseStatus) -> tuple[Action, ...]:
    """The actions for one release."""
    own = status.own
    if own.model in status.cluster.busy or status.is_foreign:
        return ()
    if status.unreachable and _is_lost(status) and not _serves_on(status):
        # When the host comes back, its workloads have no owner and are removed.
        names = ", ".join(one.place.host for one in status.unreachable)
        reason = f"{names} has been unreachable for {human_seconds(status.unreachable_seconds)}"
        return (_action(status, ActionKind.GIVE_UP, reason),)
    if own.state == ReleaseState.STOPPING:
        return (_stopping(status),)
    if own.state in UNFINISHED:
        # Its readiness, measurements and record were lost with its flow.
        return (_undo(status, f"its flow is gone while it was {own.state}"),)
    if own.state == ReleaseState.ERROR:
        return (_undo(status, "it failed, and still holds something"),)
    if own.state == ReleaseState.ASLEEP:
        return _asleep(status)
    if not status.unreachable:
        return tuple(_reachable(status))
    action = _unreachable(status)
    return (action, *_restart_in_reach(status)) if action.kind == ActionKind.WAIT else (action,)


def _is_lost(status: ReleaseStatus) -> bool:
    """Whether a host of it is away for so long that it is given up: never before it could move."""
    lost, restart = status.cluster.patience.lost_seconds, status.restart
    if lost and restart.elsewhere:  # 0 = give up at once
        lost = max(lost, restart.unreachable_seconds + MOVE_SECONDS)
    return status.unreachable_seconds >= lost


def _serves_on(status: ReleaseStatus) -> bool:
    """Whether a replica of it serves, or will once it is started again, whatever others do."""
    stays = status.up if status.restart.policy == WhenDead.NEVER else status.in_reach
    return status.own.state in SERVING and bool(stays)


def _action(status: ReleaseStatus, kind: ActionKind, reason: str, **more: Any) -> Action:
    own = status.own
    return Action(
        kind=kind,
        model=own.model,
        release=own.id,
        state=own.state,
        reason=reason,
        spares=bool(status.up),
        **more,
    )


def _asleep(status: ReleaseStatus) -> tuple[Action, ...]:
    if not status.dead or status.unreachable:
        return ()
    reason = f"it died in its sleep: {_states(status.dead)}"
    return (_action(status, ActionKind.GIVE_UP, reason),)


def _stopping(status: ReleaseStatus) -> Action:
    own, successor = status.own, successor_of(status.own)
    if status.unreachable:
        return _wait_for_host(status)
    if not successor or successor in status.cluster.took_over:
        return _action(status, ActionKind.FINISH, "the flow that stopped it is gone")
    others = (one for one in status.cluster.releases if one.model == own.model)
    # Another release was deployed while this one was unreachable or could not be restarted.
    named = (one.id for one in others if one.state in SERVING | {ReleaseState.WAKING})
    if other := next(named, status.cluster.sleepers.get(own.model, "")):
        return _action(status, ActionKind.FINISH, f"{other} has the name {own.model} by now")
    if when := status.delayed_until:
        return _action(status, ActionKind.WAIT, f"it is started again, not before {when}")
    if status.record.attempts >= status.restart.attempts:
        reason = f"{successor} never served, and {own.id} could not be started again"
        return _action(status, ActionKind.FINISH, reason)
    reason = f"it stopped for {successor}, whose flow is gone"
    return _action(status, ActionKind.BRING_BACK, reason)


def _undo(status: ReleaseStatus, reason: str) -> Action:
    if status.unreachable and status.own.workloads:
        return _wait_for_host(status)
    return _action(status, ActionKind.UNDO, reason)


def _wait_for_host(status: ReleaseStatus) -> Action:
    reason = f"it is {status.own.state}, and its host is unreachable: {_why_unreachable(status)}"
    return _action(status, ActionKind.WAIT, reason)


def _why_unreachable(status: ReleaseStatus) -> str:
    return "; ".join(f"{one.place.host}: {one.detail}" for one in status.unreachable)


def _unreachable(status: ReleaseStatus) -> Action:
    """The action for a release on unreachable hosts: replace it after the time in its spec.

    Where other replicas serve, it waits on once its hosts are lost.
    """
    own, why = status.own, _why_unreachable(status)
    if own.state == ReleaseState.RUNNING:
        host = status.unreachable[0].place.host
        return _action(status, ActionKind.MARK_UNREACHABLE, why, host=host)
    hosts = {one.place.host for one in status.unreachable}
    restart = status.restart
    moves = restart.elsewhere and not _is_lost(status)
    if status.unreachable_seconds < restart.unreachable_seconds or not moves:
        return _action(status, ActionKind.WAIT, why)
    if not status.cluster.hosts - hosts:
        return _action(status, ActionKind.WAIT, f"{why}; the fleet has no other host in sight")
    if when := status.delayed_until:
        return _action(status, ActionKind.WAIT, f"it is placed elsewhere, not before {when}")
    reason = f"{why}; unreachable for {human_seconds(status.unreachable_seconds)}"
    avoid = tuple(Avoided(host=host, reason="unreachable") for host in sorted(hosts))
    return _action(status, ActionKind.REPLACE, reason, avoid=avoid)


def _restart_in_reach(status: ReleaseStatus) -> tuple[Action, ...]:
    """The restart of dead replicas of which all hosts answer, while another host is away."""
    forbidden = status.restart.policy == WhenDead.NEVER or status.loading_next_to_dead
    if forbidden or not planned_workloads(status.own) or status.delayed_until:
        return ()
    near = {one.name for one in status.workloads if one.replica in status.in_reach}
    dead = {name: state for name, state in status.dead.items() if name in near}
    return (_restart(status, dead, _states(dead)),) if dead else ()


def _reachable(status: ReleaseStatus) -> Iterator[Action]:
    was_away = status.own.state == ReleaseState.UNREACHABLE
    if was_away:
        yield _action(status, ActionKind.MARK_REACHABLE, "all its hosts answer again")
        now = status.cluster.now
        running = replace(status.own, state=ReleaseState.RUNNING, updated_at=now)
        status = ReleaseStatus(status.cluster, running)
    if status.unlisted:
        names = ", ".join(one.name for one in status.unlisted)
        reason = f"{names} runs as planned, but not as the ledger has it"
        yield _action(status, ActionKind.ADOPT, reason, adopted=status.unlisted)
    # Nobody has probed it while a host was away, so its silence says nothing.
    if status.dead or (status.silent and not was_away):
        yield _dead(status)
    else:
        yield from _healthy(status)


def _dead(status: ReleaseStatus) -> Action:
    """The action for a release that has dead workloads or does not answer."""
    own, record = status.own, status.record
    why = _states(status.dead) or status.silent
    if status.restart.policy == WhenDead.NEVER:
        kind = ActionKind.WAIT if _serves_on(status) else ActionKind.GIVE_UP
        return _action(status, kind, f"{why}; its spec forbids a restart")
    if not planned_workloads(own):
        reason = f"{why}; its record has no plan to restart from: deploy {own.model} again"
        return _action(status, ActionKind.WAIT, reason)
    if loads := status.loading_next_to_dead:
        reason = f"{why}; {', '.join(loads)} still loads on the same accelerator"
        return _action(status, ActionKind.PROBE, reason, dead=tuple(status.dead))
    if when := status.delayed_until:
        reason = f"{why}; start {record.attempts + 1} not before {when}"
        return _action(status, ActionKind.WAIT, reason)
    if hosts := _drained(status):
        reason = f"{why}; the fleet avoids its place on {', '.join(hosts)}"
        return _action(status, ActionKind.REPLACE, reason)
    if avoid := _avoided(status):
        reason = f"{why}; started {record.attempts} times in a row"
        return _action(status, ActionKind.REPLACE, reason, avoid=avoid)
    return _restart(status, status.dead, why)


def _restart(status: ReleaseStatus, dead: Mapping[str, str], why: str) -> Action:
    host = next((one.host for one in status.workloads if one.name in dead), "")
    return _action(status, ActionKind.RESTART, why, dead=tuple(dead), host=host)


def _states(dead: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {state}" for name, state in dead.items())


def _drained(status: ReleaseStatus) -> tuple[str, ...]:
    """Hosts where the fleet avoids what a dead workload used; empty = restart it in its place.

    After a replacement that failed it is restarted once, so that it serves where nothing else can.
    """
    cluster, record, placement = status.cluster, status.record, status.own.placement
    if not (status.restart.elsewhere and cluster.hosts) or record.elsewhere > record.attempts:
        return ()
    seats = placement.seats if placement else ()
    used = {(seat.host, seat.replica): set(seat.accelerators) for seat in seats}
    there = {(one.host, one.replica) for one in _lost(status)}
    avoided = {
        place.host
        for place in cluster.avoid
        for host, replica in there
        if host == place.host
        and (not place.accelerators or used.get((host, replica), set()) & {*place.accelerators})
    }
    return tuple(sorted(avoided))


def _lost(status: ReleaseStatus) -> Iterator[Workload]:
    """Its dead workloads; all of them if it runs and does not answer."""
    return (one for one in status.workloads if one.name in status.dead or not status.dead)


def _avoided(status: ReleaseStatus) -> tuple[Avoided, ...]:
    """Places to avoid when a dead release is replaced; empty = restart it in its place.

    The first replacement avoids the accelerators of its lost replicas, the next one their hosts.
    """
    own, record, restart = status.own, status.record, status.restart
    if not restart.elsewhere or record.attempts < restart.attempts * (record.elsewhere + 1):
        return ()
    why = f"{own.id} died there {record.attempts + 1} times"
    lost = tuple(_lost(status))
    replicas = {one.replica for one in lost}
    seats = tuple(
        Avoided(host=seat.host, accelerators=seat.accelerators, reason=why)
        for seat in (own.placement.seats if own.placement else ())
        if seat.replica in replicas and seat.accelerator_type != CPU and seat.accelerators
    )
    if seats and not record.elsewhere:
        return seats
    hosts = {one.host for one in lost}
    if not status.cluster.hosts - hosts:
        return ()
    return tuple(Avoided(host=host, reason=why) for host in sorted(hosts))


def _healthy(status: ReleaseStatus) -> Iterator[Action]:
    """The actions for a release whose workloads all run."""
    record, now = status.record, status.cluster.now
    if record.started_at:
        reason = "it was started again, and has not answered yet"
        yield _action(status, ActionKind.PROBE, reason)
        return
    # What only failed to move was never started again; it is back since it was seen again.
    well = record.well_since if record.attempts else status.own.updated_at
    failed = record.attempts or record.elsewhere
    if failed and well and now - well >= timedelta(seconds=HEALTHY_SECONDS):
        reason = f"it has answered for {HEALTHY_SECONDS:g} s"
        yield _action(status, ActionKind.FORGET, reason)
    wait = timedelta(seconds=status.cluster.patience.probe_seconds)
    # An answer in the future is that of a clock which was ahead.
    if abs(now - (record.probed_at or status.own.updated_at)) >= wait:
        yield _action(status, ActionKind.PROBE, "its last answer is some time ago")


ONGOING = frozenset({"stage", "lend", "keep"})
"""Helpers that may run long, depending on the size of a model. Without their flow they exit by
themselves: at their deadline, when requests stop, or when everything is read."""

STAGE = "stage"
STAGE_SECONDS = 86_400.0
"""How long a staging helper may stay unstarted while any flow works, since it first receives a
directory of another machine. A flow that needs the same model notices a stalled transfer sooner."""


def stray_actions(cluster: ClusterState) -> tuple[Action, ...]:
    """Actions for workloads that no release of the ledger owns.

    Each gets one action, even if observed twice because two names of the fleet lead to one daemon.
    """
    owned = {
        workload.name
        for release in cluster.releases
        for workload in (*release.workloads, *planned_workloads(release))
    }
    actions: dict[tuple[str, str], Action] = {}
    for observation in cluster.observations:
        for one in observation.workloads:
            if one.name not in owned and (action := _stray(cluster, observation, one)):
                actions.setdefault((one.identity, one.name), action)
    return tuple(actions.values())


def _stray(
    cluster: ClusterState, observation: Observation, stray: ObservedWorkload
) -> Action | None:
    if stray.model in cluster.busy or (stray.helper in ONGOING and stray.running):
        return None
    patience = cluster.patience.orphan_seconds
    if stray.fresh and stray.helper == STAGE and cluster.busy:
        patience = max(STAGE_SECONDS, patience)
    until = stray.since + timedelta(seconds=patience)
    waits = until > cluster.now
    what = f"a helper ({stray.helper})" if stray.helper else f"of {stray.release}"
    reason = f"{what}: {stray.state}; it has no owner"
    return Action(
        kind=ActionKind.WAIT if waits else ActionKind.REMOVE,
        model=stray.model,
        reason=f"{reason}; removed after {until:%H:%M:%S} UTC" if waits else reason,
        host=observation.place.host,
        place=observation.place,
        stray=stray,
    )
