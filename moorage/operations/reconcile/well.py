"""A release that runs: whether it answers, and whether its failures may be forgotten."""

from __future__ import annotations

from datetime import timedelta

from moorage.operations.reconcile.actions import Action, Deed
from moorage.operations.reconcile.backoff import HEALTHY_SECONDS
from moorage.operations.reconcile.release_status import Case


def about_the_well(case: Case) -> tuple[Action, ...]:
    """What is to be done about a release of which everything runs."""
    record, now = case.record, case.world.now
    if record.started_at:
        return (case.action(Deed.PROBE, "it was started again, and has not answered yet"),)
    well = record.well_since
    if record.attempts and well and now - well >= timedelta(seconds=HEALTHY_SECONDS):
        reason = f"it has answered for {HEALTHY_SECONDS:g} s"
        return (case.action(Deed.FORGET, reason), *_probe(case))
    return _probe(case)


def _probe(case: Case) -> tuple[Action, ...]:
    last = case.record.probed_at or case.own.since
    wait = timedelta(seconds=case.world.patience.probe_seconds)
    if case.world.now - last < wait:
        return ()
    return (case.action(Deed.PROBE, "it was last known to answer some time ago"),)
