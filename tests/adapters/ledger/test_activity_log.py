"""What monitoring reads of the ledger, and what is written down for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import update

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.tables import RELEASES
from moorage.common.causes import Cause
from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.operations.metrics.activity import Outcome
from moorage.operations.reconcile.counts import RUN, ReconcileCount
from moorage.releases.release import FailureRecord, Release, StepRecord
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_releases import running, starting
from tests.builders import (
    NOON,
    a_claim,
    a_cpu_host,
    a_fleet,
    a_host,
    a_placement,
    a_release,
    a_spec,
)


def test_transitions_are_read_in_their_order_and_each_once(ledger: Ledger) -> None:
    assert ledger.activity.transitions_after(0) == []
    first = running(ledger)
    found = ledger.activity.transitions_after(0)
    assert [one for _, one in found] == list(ledger.releases.transitions(first))
    ledger.releases.move(first, ReleaseState.STOPPING)
    ((_, stopping),) = ledger.activity.transitions_after(found[-1][0])
    assert (stopping.model, stopping.after) == ("tiny", ReleaseState.STOPPING)


def test_the_states_of_all_releases_are_counted(ledger: Ledger) -> None:
    first = running(ledger)
    starting(ledger)
    other = running(ledger, "other")
    counted = ledger.activity.states()
    assert counted.keys() == set(ReleaseState)
    assert {state: count for state, count in counted.items() if count} == {
        ReleaseState.RUNNING: 2,
        ReleaseState.STARTING: 1,
    }
    ledger.releases.move(other, ReleaseState.UNREACHABLE)
    assert ledger.activity.serving() == {
        first: ReleaseState.RUNNING,
        other: ReleaseState.UNREACHABLE,
    }


def test_the_parts_of_a_record_that_count_are_read(ledger: Ledger) -> None:
    spec = a_spec()
    record = _record(spec.name, placement=a_placement(spec, a_host(), a_cpu_host()))
    one, other, unfinished = (starting(ledger, name) for name in ("tiny", "other", "third"))
    ledger.releases.take_over(record.model_copy(update={"id": one, "downtime_seconds": 1.5}))
    why = FailureRecord(cause=Cause.NO_FIT, detail="too large", suggestion="none")
    ledger.releases.fail(
        other, Cause.NO_FIT, a_release(other, spec=a_spec(name="other"), failure=why)
    )
    assert ledger.activity.outcomes([one, other, unfinished]) == {
        one: Outcome(
            model="tiny",
            phases=(("stage", 2.5), ("verify", 40.0)),
            downtime_seconds=1.5,
            refusals={Reason.ENGINE: 1},
        ),
        other: Outcome(model="other", cause="no-fit"),
    }


def test_a_record_of_another_shape_counts_nothing(ledger: Ledger) -> None:
    one = running(ledger)
    with ledger._engine.begin() as connection:
        connection.execute(update(RELEASES).values(record={"steps": [7], "placement": "no"}))
    assert ledger.activity.outcomes([one]) == {one: Outcome(model="tiny")}


def test_a_host_is_as_large_as_at_its_last_claim(ledger: Ledger) -> None:
    release = ledger.releases.begin(a_spec(), "main", "")
    host = a_host(gpus=1, ram_reserve=28 * GIB, accelerator_reserve=GIB)
    ledger.claims.commit(release, [a_claim()], a_fleet(host))
    (found,) = ledger.unseen_hosts.capacities().values()
    assert {(one.resource, one.index, one.amount) for one in found} == {
        (Resource.RAM, 0, 100 * GIB),
        (Resource.ACCELERATOR, 0, 79 * GIB),
    }


def test_what_reconciling_did_adds_up(ledger: Ledger) -> None:
    assert ledger.reconcile_counts.all() == ()
    later = NOON + timedelta(minutes=1)
    for when, restarts in ((NOON, 2), (later, 1)):
        run = ReconcileCount(kind=RUN, done=1, latest=when)
        ledger.reconcile_counts.add(
            [run, ReconcileCount(kind="restart", done=restarts, not_done=1, latest=when)]
        )
    assert ledger.reconcile_counts.all() == (
        ReconcileCount(kind="restart", done=3, not_done=2, latest=later),
        ReconcileCount(kind=RUN, done=2, latest=later),
    )


def _record(model: str, **changes: Any) -> Release:
    steps = (StepRecord(name="stage", seconds=2.5), StepRecord(name="verify", seconds=40.0))
    return a_release(spec=a_spec(name=model), steps=steps, **changes)
