"""The actions for one release, by rules in a fixed order: the first rule that applies decides.

A living flow works on its model alone, so nothing is done there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from moorage.common.units import human_seconds
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.operations.reconcile.release_status import HEALTHY_SECONDS, ReleaseStatus
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState
from moorage.spec import WhenDead


def about_the_dead(case: ReleaseStatus) -> tuple[Action, ...]:
    """Actions for a release with dead workloads, or that does not answer."""
    own, record, why = case.own, case.record, _told(case)
    if own.restart.policy == WhenDead.NEVER:
        return (case.action(ActionKind.GIVE_UP, f"{why}; its spec does not want it started again"),)
    if not own.planned:
        reason = f"{why}; its record tells no plan to start it from: deploy {own.model} again"
        return (case.action(ActionKind.WAIT, reason),)
    if record.not_before and record.not_before > case.world.now:
        reason = f"{why}; start {record.attempts + 1} not before {record.not_before:%H:%M:%S} UTC"
        return (case.action(ActionKind.WAIT, reason),)
    if avoid := _elsewhere(case):
        reason = f"{why}; started {record.attempts} times in a row"
        return (case.action(ActionKind.REPLACE, reason, avoid=avoid),)
    host = next((one.host for one in case.workloads if one.name in case.dead), "")
    return (case.action(ActionKind.RESTART, why, dead=tuple(case.dead), host=host),)


def _elsewhere(case: ReleaseStatus) -> tuple[dict[str, Any], ...]:
    """Where it must not be placed again; empty when it is not to be placed elsewhere yet.

    Its accelerators are left first, its hosts the next time.
    """
    own, record = case.own, case.record
    if not own.restart.elsewhere or record.attempts < own.restart.attempts * (record.elsewhere + 1):
        return ()
    why = f"{own.id} died there {record.attempts + 1} times"
    if own.seats and not record.elsewhere:
        return tuple({**seat.model_dump(), "reason": why} for seat in own.seats)
    hosts = {one.host for one in case.workloads if one.name in case.dead or not case.dead}
    if not case.world.hosts - hosts:
        return ()
    return tuple({"host": host, "reason": why} for host in sorted(hosts))


def _told(case: ReleaseStatus) -> str:
    if case.dead:
        return "; ".join(f"{name}: {state}" for name, state in case.dead.items())
    return case.silent


def about_the_well(case: ReleaseStatus) -> tuple[Action, ...]:
    """Actions for a release of which every workload runs."""
    record, now = case.record, case.world.now
    if record.started_at:
        return (case.action(ActionKind.PROBE, "it was started again, and has not answered yet"),)
    well = record.well_since
    if record.attempts and well and now - well >= timedelta(seconds=HEALTHY_SECONDS):
        reason = f"it has answered for {HEALTHY_SECONDS:g} s"
        return (case.action(ActionKind.FORGET, reason), *_probe(case))
    return _probe(case)


def _probe(case: ReleaseStatus) -> tuple[Action, ...]:
    last = case.record.probed_at or case.own.since
    wait = timedelta(seconds=case.world.patience.probe_seconds)
    if case.world.now - last < wait:
        return ()
    return (case.action(ActionKind.PROBE, "it was last known to answer some time ago"),)


Rule = Callable[[ReleaseStatus], tuple[Action, ...] | None]


def about(case: ReleaseStatus) -> tuple[Action, ...]:
    """The actions for one release."""
    for rule in RULES:
        if (actions := rule(case)) is not None:
            return actions
    return ()


def _worked_on(case: ReleaseStatus) -> tuple[Action, ...] | None:
    return () if case.own.busy else None


def _given_up(case: ReleaseStatus) -> tuple[Action, ...] | None:
    """A host that is gone for good holds its claims no longer; should it come back, what runs
    there has no owner any more and is removed."""
    lost = case.world.patience.lost_seconds
    if not case.unseen or case.unseen_seconds < lost:
        return None
    names = ", ".join(look.place.host for look in case.unseen)
    reason = f"{names} has been out of sight for {human_seconds(case.unseen_seconds)}"
    return (case.action(ActionKind.GIVE_UP, reason),)


def _stopping(case: ReleaseStatus) -> tuple[Action, ...] | None:
    own = case.own
    if own.state != ReleaseState.STOPPING:
        return None
    if case.unseen:
        return (_waits_for_sight(case),)
    if not own.successor or own.successor_serves:
        return (case.action(ActionKind.FINISH, "the flow that stopped it is gone"),)
    if other := _serves_instead(case):
        return (case.action(ActionKind.FINISH, f"{other} serves {own.model} by now"),)
    if (when := case.record.not_before) and when > case.world.now:
        return (
            case.action(ActionKind.WAIT, f"it is started again, not before {when:%H:%M:%S} UTC"),
        )
    if case.record.attempts >= own.restart.attempts:
        why = f"{own.successor} never came to be, and it could not be started again"
        return (case.action(ActionKind.FINISH, why),)
    reason = f"it stopped for {own.successor}, whose flow is gone"
    return (case.action(ActionKind.BRING_BACK, reason),)


def _serves_instead(case: ReleaseStatus) -> str:
    """A release that was deployed while this one could not be reached, or not be started again."""
    others = (one for one in case.world.releases if one.model == case.own.model)
    return next((one.id for one in others if one.state in SERVING), "")


def _unfinished(case: ReleaseStatus) -> tuple[Action, ...] | None:
    """Its flow's readiness, measurements and record are lost with it, so it is undone."""
    if case.own.state not in UNFINISHED:
        return None
    if case.unseen and case.own.workloads:
        return (_waits_for_sight(case),)
    return (case.action(ActionKind.UNDO, f"its flow is gone while it was {case.own.state}"),)


def _failed(case: ReleaseStatus) -> tuple[Action, ...] | None:
    if case.own.state != ReleaseState.ERROR:
        return None
    if case.unseen and case.own.workloads:
        return (_waits_for_sight(case),)
    return (case.action(ActionKind.UNDO, "it failed, and still holds something"),)


def _out_of_sight(case: ReleaseStatus) -> tuple[Action, ...] | None:
    if not case.unseen:
        return None
    why = "; ".join(f"{one.place.host}: {one.detail}" for one in case.unseen)
    if case.own.state == ReleaseState.RUNNING:
        host = case.unseen[0].place.host
        return (case.action(ActionKind.MARK_UNREACHABLE, why, host=host),)
    return _moved_away(case, why)


def _moved_away(case: ReleaseStatus, why: str) -> tuple[Action, ...]:
    """Elsewhere, once its host has been away for longer than its spec lets it."""
    wait = case.own.restart.unreachable_seconds
    gone = {look.place.host for look in case.unseen}
    if case.unseen_seconds < wait or not case.own.restart.elsewhere:
        return (case.action(ActionKind.WAIT, why),)
    if not case.world.hosts - gone:
        return (case.action(ActionKind.WAIT, f"{why}; the fleet has no other host in sight"),)
    if (when := case.record.not_before) and when > case.world.now:
        return (
            case.action(ActionKind.WAIT, f"it is placed elsewhere, not before {when:%H:%M:%S} UTC"),
        )
    reason = f"{why}; out of sight for {human_seconds(case.unseen_seconds)}"
    avoid = tuple({"host": host, "reason": "out of sight"} for host in sorted(gone))
    return (case.action(ActionKind.REPLACE, reason, avoid=avoid),)


def _serving(case: ReleaseStatus) -> tuple[Action, ...] | None:
    seen: tuple[Action, ...] = ()
    if case.own.state == ReleaseState.UNREACHABLE:
        seen = (case.action(ActionKind.MARK_SEEN, "all its hosts can be looked at again"),)
        case = ReleaseStatus(
            case.world, case.own.model_copy(update={"state": ReleaseState.RUNNING})
        )
    if case.unlisted:
        names = ", ".join(one.name for one in case.unlisted)
        reason = f"{names} runs as planned, but not as the ledger has it"
        seen = (*seen, case.action(ActionKind.ADOPT, reason, adopted=case.unlisted))
    dying = case.dead or case.silent
    return (*seen, *(about_the_dead(case) if dying else about_the_well(case)))


def _waits_for_sight(case: ReleaseStatus) -> Action:
    why = "; ".join(f"{one.place.host}: {one.detail}" for one in case.unseen)
    return case.action(
        ActionKind.WAIT, f"it is {case.own.state}, and its host is out of sight: {why}"
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
