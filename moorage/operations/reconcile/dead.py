"""A release that should serve and does not: started again, placed elsewhere, or given up."""

from __future__ import annotations

from typing import Any

from moorage.operations.reconcile.actions import Action, Deed
from moorage.operations.reconcile.release_status import Case
from moorage.spec import WhenDead


def about_the_dead(case: Case) -> tuple[Action, ...]:
    """What is to be done about a release of which something died, or that does not answer."""
    own, record, told = case.own, case.record, _told(case)
    if own.restart.policy == WhenDead.NEVER:
        return (case.action(Deed.GIVE_UP, f"{told}; its spec does not want it started again"),)
    if not own.planned:
        reason = f"{told}; its record tells no plan to start it from: deploy {own.model} again"
        return (case.action(Deed.WAIT, reason),)
    if record.not_before and record.not_before > case.world.now:
        reason = f"{told}; start {record.attempts + 1} not before {record.not_before:%H:%M:%S} UTC"
        return (case.action(Deed.WAIT, reason),)
    if avoid := _elsewhere(case):
        reason = f"{told}; started {record.attempts} times in a row"
        return (case.action(Deed.REPLACE, reason, avoid=avoid),)
    host = next((one.host for one in case.workloads if one.name in case.dead), "")
    return (case.action(Deed.RESTART, told, dead=tuple(case.dead), host=host),)


def _elsewhere(case: Case) -> tuple[dict[str, Any], ...]:
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


def _told(case: Case) -> str:
    if case.dead:
        return "; ".join(f"{name}: {state}" for name, state in case.dead.items())
    return case.silent
