"""What is to be done about a release: rules in the order in which they are asked.

The first rule that is concerned decides. A flow that lives works on its model alone, so nothing at
all is done there.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.common.units import human_seconds
from moorage.operations.reconcile.actions import Action, Deed
from moorage.operations.reconcile.dead import about_the_dead
from moorage.operations.reconcile.release_status import Case
from moorage.operations.reconcile.well import about_the_well
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState

Rule = Callable[[Case], tuple[Action, ...] | None]


def about(case: Case) -> tuple[Action, ...]:
    """What is to be done about one release."""
    for rule in RULES:
        if (actions := rule(case)) is not None:
            return actions
    return ()


def _worked_on(case: Case) -> tuple[Action, ...] | None:
    return () if case.own.busy else None


def _given_up(case: Case) -> tuple[Action, ...] | None:
    """A host that is gone for good holds its claims no longer; should it come back, what runs
    there has no owner any more and is removed."""
    lost = case.world.patience.lost_seconds
    if not case.unseen or case.unseen_seconds < lost:
        return None
    names = ", ".join(look.place.host for look in case.unseen)
    reason = f"{names} has been out of sight for {human_seconds(case.unseen_seconds)}"
    return (case.action(Deed.GIVE_UP, reason),)


def _stopping(case: Case) -> tuple[Action, ...] | None:
    own = case.own
    if own.state != ReleaseState.STOPPING:
        return None
    if case.unseen:
        return (_waits_for_sight(case),)
    if not own.successor or own.successor_serves:
        return (case.action(Deed.FINISH, "the flow that stopped it is gone"),)
    if other := _serves_instead(case):
        return (case.action(Deed.FINISH, f"{other} serves {own.model} by now"),)
    if (when := case.record.not_before) and when > case.world.now:
        return (case.action(Deed.WAIT, f"it is started again, not before {when:%H:%M:%S} UTC"),)
    if case.record.attempts >= own.restart.attempts:
        why = f"{own.successor} never came to be, and it could not be started again"
        return (case.action(Deed.FINISH, why),)
    reason = f"it stopped for {own.successor}, whose flow is gone"
    return (case.action(Deed.BRING_BACK, reason),)


def _serves_instead(case: Case) -> str:
    """A release that was deployed while this one could not be reached, or not be started again."""
    others = (one for one in case.world.releases if one.model == case.own.model)
    return next((one.id for one in others if one.state in SERVING), "")


def _unfinished(case: Case) -> tuple[Action, ...] | None:
    """What its flow knew is gone with it: readiness, measurements, the record. So it is undone."""
    if case.own.state not in UNFINISHED:
        return None
    if case.unseen and case.own.workloads:
        return (_waits_for_sight(case),)
    return (case.action(Deed.UNDO, f"its flow is gone while it was {case.own.state}"),)


def _failed(case: Case) -> tuple[Action, ...] | None:
    if case.own.state != ReleaseState.ERROR:
        return None
    if case.unseen and case.own.workloads:
        return (_waits_for_sight(case),)
    return (case.action(Deed.UNDO, "it failed, and still holds something"),)


def _out_of_sight(case: Case) -> tuple[Action, ...] | None:
    if not case.unseen:
        return None
    told = "; ".join(f"{one.place.host}: {one.detail}" for one in case.unseen)
    if case.own.state == ReleaseState.RUNNING:
        host = case.unseen[0].place.host
        return (case.action(Deed.MARK_UNREACHABLE, told, host=host),)
    return _moved_away(case, told)


def _moved_away(case: Case, told: str) -> tuple[Action, ...]:
    """Elsewhere, once its host has been away for longer than its spec lets it."""
    wait = case.own.restart.unreachable_seconds
    gone = {look.place.host for look in case.unseen}
    if case.unseen_seconds < wait or not case.own.restart.elsewhere:
        return (case.action(Deed.WAIT, told),)
    if not case.world.hosts - gone:
        return (case.action(Deed.WAIT, f"{told}; the fleet has no other host in sight"),)
    if (when := case.record.not_before) and when > case.world.now:
        return (case.action(Deed.WAIT, f"it is placed elsewhere, not before {when:%H:%M:%S} UTC"),)
    reason = f"{told}; out of sight for {human_seconds(case.unseen_seconds)}"
    avoid = tuple({"host": host, "reason": "out of sight"} for host in sorted(gone))
    return (case.action(Deed.REPLACE, reason, avoid=avoid),)


def _serving(case: Case) -> tuple[Action, ...] | None:
    seen: tuple[Action, ...] = ()
    if case.own.state == ReleaseState.UNREACHABLE:
        seen = (case.action(Deed.MARK_SEEN, "all its hosts can be looked at again"),)
        case = Case(case.world, case.own.model_copy(update={"state": ReleaseState.RUNNING}))
    if case.unlisted:
        names = ", ".join(one.name for one in case.unlisted)
        reason = f"{names} runs as planned, but not as the ledger has it"
        seen = (*seen, case.action(Deed.ADOPT, reason, adopted=case.unlisted))
    dying = case.dead or case.silent
    return (*seen, *(about_the_dead(case) if dying else about_the_well(case)))


def _waits_for_sight(case: Case) -> Action:
    told = "; ".join(f"{one.place.host}: {one.detail}" for one in case.unseen)
    return case.action(Deed.WAIT, f"it is {case.own.state}, and its host is out of sight: {told}")


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
