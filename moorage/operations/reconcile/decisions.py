"""The actions that bring ledger and hosts into agreement."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from moorage.common.units import human_seconds
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.operations.reconcile.cluster_state import ClusterState, Observation, ObservedWorkload
from moorage.operations.reconcile.release_status import HEALTHY_SECONDS, ReleaseStatus
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState
from moorage.spec import WhenDead


def about_the_dead(status: ReleaseStatus) -> tuple[Action, ...]:
    """Actions for a release with dead workloads, or that does not answer."""
    own, record, why = status.own, status.record, _problem(status)
    if own.restart.policy == WhenDead.NEVER:
        return (
            status.action(ActionKind.GIVE_UP, f"{why}; its spec does not want it started again"),
        )
    if not own.planned:
        reason = f"{why}; its record tells no plan to start it from: deploy {own.model} again"
        return (status.action(ActionKind.WAIT, reason),)
    if record.not_before and record.not_before > status.cluster.now:
        reason = f"{why}; start {record.attempts + 1} not before {record.not_before:%H:%M:%S} UTC"
        return (status.action(ActionKind.WAIT, reason),)
    if avoid := _elsewhere(status):
        reason = f"{why}; started {record.attempts} times in a row"
        return (status.action(ActionKind.REPLACE, reason, avoid=avoid),)
    host = next((one.host for one in status.workloads if one.name in status.dead), "")
    return (status.action(ActionKind.RESTART, why, dead=tuple(status.dead), host=host),)


def _elsewhere(status: ReleaseStatus) -> tuple[dict[str, Any], ...]:
    """Where it must not be placed again; empty when it is not to be placed elsewhere yet.

    Its accelerators are left first, its hosts the next time.
    """
    own, record = status.own, status.record
    if not own.restart.elsewhere or record.attempts < own.restart.attempts * (record.elsewhere + 1):
        return ()
    why = f"{own.id} died there {record.attempts + 1} times"
    if own.seats and not record.elsewhere:
        return tuple({**seat.model_dump(), "reason": why} for seat in own.seats)
    hosts = {one.host for one in status.workloads if one.name in status.dead or not status.dead}
    if not status.cluster.hosts - hosts:
        return ()
    return tuple({"host": host, "reason": why} for host in sorted(hosts))


def _problem(status: ReleaseStatus) -> str:
    if status.dead:
        return "; ".join(f"{name}: {state}" for name, state in status.dead.items())
    return status.silent


def about_the_well(status: ReleaseStatus) -> tuple[Action, ...]:
    """Actions for a release of which every workload runs."""
    record, now = status.record, status.cluster.now
    if record.started_at:
        return (status.action(ActionKind.PROBE, "it was started again, and has not answered yet"),)
    well = record.well_since
    if record.attempts and well and now - well >= timedelta(seconds=HEALTHY_SECONDS):
        reason = f"it has answered for {HEALTHY_SECONDS:g} s"
        return (status.action(ActionKind.FORGET, reason), *_probe(status))
    return _probe(status)


def _probe(status: ReleaseStatus) -> tuple[Action, ...]:
    last = status.record.probed_at or status.own.since
    wait = timedelta(seconds=status.cluster.patience.probe_seconds)
    if status.cluster.now - last < wait:
        return ()
    return (status.action(ActionKind.PROBE, "it was last known to answer some time ago"),)


Rule = Callable[[ReleaseStatus], tuple[Action, ...] | None]


def about(status: ReleaseStatus) -> tuple[Action, ...]:
    """The actions for one release."""
    for rule in RULES:
        if (actions := rule(status)) is not None:
            return actions
    return ()


def _worked_on(status: ReleaseStatus) -> tuple[Action, ...] | None:
    return () if status.own.busy else None


def _given_up(status: ReleaseStatus) -> tuple[Action, ...] | None:
    """A host that is gone for good holds its claims no longer; should it come back, what runs
    there has no owner any more and is removed."""
    lost = status.cluster.patience.lost_seconds
    if not status.unseen or status.unseen_seconds < lost:
        return None
    names = ", ".join(look.place.host for look in status.unseen)
    reason = f"{names} has been out of sight for {human_seconds(status.unseen_seconds)}"
    return (status.action(ActionKind.GIVE_UP, reason),)


def _stopping(status: ReleaseStatus) -> tuple[Action, ...] | None:
    own = status.own
    if own.state != ReleaseState.STOPPING:
        return None
    if status.unseen:
        return (_waits_for_sight(status),)
    if not own.successor or own.successor_serves:
        return (status.action(ActionKind.FINISH, "the flow that stopped it is gone"),)
    if other := _serves_instead(status):
        return (status.action(ActionKind.FINISH, f"{other} serves {own.model} by now"),)
    if (when := status.record.not_before) and when > status.cluster.now:
        return (
            status.action(ActionKind.WAIT, f"it is started again, not before {when:%H:%M:%S} UTC"),
        )
    if status.record.attempts >= own.restart.attempts:
        why = f"{own.successor} never came to be, and it could not be started again"
        return (status.action(ActionKind.FINISH, why),)
    reason = f"it stopped for {own.successor}, whose flow is gone"
    return (status.action(ActionKind.BRING_BACK, reason),)


def _serves_instead(status: ReleaseStatus) -> str:
    """A release that was deployed while this one could not be reached, or not be started again."""
    others = (one for one in status.cluster.releases if one.model == status.own.model)
    return next((one.id for one in others if one.state in SERVING), "")


def _unfinished(status: ReleaseStatus) -> tuple[Action, ...] | None:
    """Its flow's readiness, measurements and record are lost with it, so it is undone."""
    if status.own.state not in UNFINISHED:
        return None
    if status.unseen and status.own.workloads:
        return (_waits_for_sight(status),)
    return (status.action(ActionKind.UNDO, f"its flow is gone while it was {status.own.state}"),)


def _failed(status: ReleaseStatus) -> tuple[Action, ...] | None:
    if status.own.state != ReleaseState.ERROR:
        return None
    if status.unseen and status.own.workloads:
        return (_waits_for_sight(status),)
    return (status.action(ActionKind.UNDO, "it failed, and still holds something"),)


def _out_of_sight(status: ReleaseStatus) -> tuple[Action, ...] | None:
    if not status.unseen:
        return None
    why = "; ".join(f"{one.place.host}: {one.detail}" for one in status.unseen)
    if status.own.state == ReleaseState.RUNNING:
        host = status.unseen[0].place.host
        return (status.action(ActionKind.MARK_UNREACHABLE, why, host=host),)
    return _moved_away(status, why)


def _moved_away(status: ReleaseStatus, why: str) -> tuple[Action, ...]:
    """Elsewhere, once its host has been away for longer than its spec lets it."""
    wait = status.own.restart.unreachable_seconds
    gone = {look.place.host for look in status.unseen}
    if status.unseen_seconds < wait or not status.own.restart.elsewhere:
        return (status.action(ActionKind.WAIT, why),)
    if not status.cluster.hosts - gone:
        return (status.action(ActionKind.WAIT, f"{why}; the fleet has no other host in sight"),)
    if (when := status.record.not_before) and when > status.cluster.now:
        return (
            status.action(
                ActionKind.WAIT, f"it is placed elsewhere, not before {when:%H:%M:%S} UTC"
            ),
        )
    reason = f"{why}; out of sight for {human_seconds(status.unseen_seconds)}"
    avoid = tuple({"host": host, "reason": "out of sight"} for host in sorted(gone))
    return (status.action(ActionKind.REPLACE, reason, avoid=avoid),)


def _serving(status: ReleaseStatus) -> tuple[Action, ...] | None:
    seen: tuple[Action, ...] = ()
    if status.own.state == ReleaseState.UNREACHABLE:
        seen = (status.action(ActionKind.MARK_SEEN, "all its hosts can be looked at again"),)
        status = ReleaseStatus(
            status.cluster, status.own.model_copy(update={"state": ReleaseState.RUNNING})
        )
    if status.unlisted:
        names = ", ".join(one.name for one in status.unlisted)
        reason = f"{names} runs as planned, but not as the ledger has it"
        seen = (*seen, status.action(ActionKind.ADOPT, reason, adopted=status.unlisted))
    dying = status.dead or status.silent
    return (*seen, *(about_the_dead(status) if dying else about_the_well(status)))


def _waits_for_sight(status: ReleaseStatus) -> Action:
    why = "; ".join(f"{one.place.host}: {one.detail}" for one in status.unseen)
    return status.action(
        ActionKind.WAIT, f"it is {status.own.state}, and its host is out of sight: {why}"
    )


RULES: tuple[Rule, ...] = (
    _worked_on,
    _given_up,
    _stopping,
    _unfinished,
    _failed,
    _out_of_sight,
    _serving,
)
"""Asked in this order."""


ONGOING = frozenset({"stage", "lend", "keep"})
"""Helpers for these take as long as a model is large, and end by themselves when their flow is
gone: at their deadline, when nobody asks any more, or once all is read."""

FED = "stage"
FED_SECONDS = 86_400.0
"""How long a helper for that may be made and not started while any flow works: a directory of
another machine is sent to it first. Who wants the same model sees sooner that nobody sends."""


def about_strays(cluster: ClusterState) -> tuple[Action, ...]:
    """Actions for workloads that no release of the ledger owns.

    One workload may be seen twice, where two names of the fleet lead to one daemon.
    """
    owned = {
        workload.name
        for release in cluster.releases
        for workload in (*release.workloads, *release.planned)
    }
    actions: dict[tuple[str, str], Action] = {}
    for look in cluster.observations:
        for found in look.found:
            if found.name not in owned and (action := _about(cluster, look, found)):
                actions.setdefault((found.identity, found.name), action)
    return tuple(actions.values())


def _about(cluster: ClusterState, look: Observation, found: ObservedWorkload) -> Action | None:
    if found.model in cluster.busy or (found.helper in ONGOING and found.running):
        return None
    what = f"a helper ({found.helper})" if found.helper else f"of {found.release}"
    reason = f"{what}: {found.state}; nobody owns it"
    until = found.since + timedelta(seconds=_patience(cluster, found))
    waits = until > cluster.now
    return Action(
        kind=ActionKind.WAIT if waits else ActionKind.REMOVE,
        model=found.model,
        reason=f"{reason}; removed from {until:%H:%M:%S} on" if waits else reason,
        host=look.place.host,
        place=look.place,
        found=found,
    )


def _patience(cluster: ClusterState, found: ObservedWorkload) -> float:
    orphan = cluster.patience.orphan_seconds
    may_be_fed = found.fresh and found.helper == FED and cluster.busy
    return max(FED_SECONDS, orphan) if may_be_fed else orphan


def decide(cluster: ClusterState) -> tuple[Action, ...]:
    """The actions that bring ledger and hosts into agreement: by release, then strays.

    After all of them are done, a new decision asks only for waiting.
    """
    releases = [action for own in cluster.releases for action in about(ReleaseStatus(cluster, own))]
    back = {action.release for action in releases if action.kind == ActionKind.BRING_BACK}
    # Whoever is brought back undoes first what it had made room for.
    undone = {own.successor for own in cluster.releases if own.id in back}
    kept = (one for one in releases if one.kind != ActionKind.UNDO or one.release not in undone)
    return (*kept, *about_strays(cluster))
