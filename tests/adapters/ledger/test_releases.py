from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from moorage.adapters.ledger import Ledger, release_rows
from moorage.adapters.ledger.check import problems_of_content
from moorage.adapters.ledger.database import gate, open_database, reading
from moorage.adapters.ledger.decoding import release_of
from moorage.adapters.ledger.tables import RELEASES, TRANSITION_LOG, WORKLOADS
from moorage.common.failures import Cause, Failure
from moorage.releases.addresses import reached_at
from moorage.releases.release import FailureRecord, Restart
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import TRANSITIONS, ReleaseState
from tests.builders import (
    REVISION,
    a_claim,
    a_container,
    a_fleet,
    a_plan,
    a_profile,
    a_release,
    a_spec,
    a_workload,
)
from tests.operations.history.releases import planned, ran

PENDING, SCHEDULED, STARTING = (ReleaseState(s) for s in ("pending", "scheduled", "starting"))
RUNNING, STOPPING, SUPERSEDED = (ReleaseState(s) for s in ("running", "stopping", "superseded"))


def begin(ledger: Ledger, name: str = "tiny") -> str:
    return ledger.releases.begin(a_spec(name=name), REVISION, "flow-run")


def starting(ledger: Ledger, name: str = "tiny") -> str:
    identity = begin(ledger, name)
    ledger.releases.move(identity, SCHEDULED)
    ledger.releases.move(identity, STARTING)
    return identity


def running(ledger: Ledger, name: str = "tiny", replaced: str = "") -> str:
    identity = starting(ledger, name)
    ledger.releases.take_over(a_release(identity, spec=a_spec(name=name), replaced=replaced))
    return identity


def transitions(url: str) -> list[tuple[str, str, str, str]]:
    engine = open_database(url)
    with reading(engine) as connection:
        rows = connection.execute(select(TRANSITION_LOG).order_by(TRANSITION_LOG.c.id)).all()
    engine.dispose()
    return [(row.release, row.from_state, row.to_state, row.cause) for row in rows]


def test_releases_of_a_model_are_numbered(ledger: Ledger) -> None:
    assert ledger.releases.next_id("tiny") == "tiny.v1"
    assert [begin(ledger), begin(ledger), begin(ledger, "other")] == [
        "tiny.v1",
        "tiny.v2",
        "other.v1",
    ]
    assert ledger.releases.next_id("tiny") == "tiny.v3"


def test_a_release_begins_as_pending_with_what_was_asked_for(ledger: Ledger) -> None:
    row = ledger.releases.get(begin(ledger))
    assert (row.id, row.model, row.number, row.state) == ("tiny.v1", "tiny", 1, PENDING)
    assert (row.spec_digest, row.revision) == (a_spec().digest, REVISION)
    assert (row.flow_run_id, row.cause, row.release, row.workloads) == ("flow-run", "", None, ())
    assert row.created_at.tzinfo is UTC
    assert abs(row.created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_every_move_is_logged(ledger: Ledger, url: str) -> None:
    identity = begin(ledger)
    ledger.releases.move(identity, SCHEDULED)
    ledger.releases.move(identity, ReleaseState.ERROR, "interrupted")
    assert ledger.releases.get(identity).cause == "interrupted"
    assert transitions(url) == [
        (identity, "pending", "scheduled", ""),
        (identity, "scheduled", "error", "interrupted"),
    ]


def test_a_state_may_be_explained_later(ledger: Ledger, url: str) -> None:
    identity = begin(ledger)
    ledger.releases.explain(identity, "it waits for its turn")
    assert ledger.releases.get(identity).cause == "it waits for its turn"
    assert ledger.releases.get(identity).state == PENDING
    assert transitions(url) == []


@pytest.mark.parametrize("to", sorted(set(ReleaseState) - TRANSITIONS[PENDING]))
def test_a_move_that_the_table_does_not_allow_is_refused(ledger: Ledger, to: ReleaseState) -> None:
    identity = begin(ledger)
    with pytest.raises(Failure, match=f"{identity} is pending and cannot become {to}") as caught:
        ledger.releases.move(identity, to)
    assert caught.value.cause is Cause.LOST_LOCK
    assert ledger.releases.get(identity).state == PENDING


def test_an_unknown_release_is_named(ledger: Ledger) -> None:
    for action in (ledger.releases.get, lambda name: ledger.releases.move(name, SCHEDULED)):
        with pytest.raises(Failure, match=r"nobody\.v1") as caught:
            action("nobody.v1")
        assert caught.value.cause is Cause.UNKNOWN_RELEASE


def test_a_release_takes_over_from_its_predecessor_in_one_step(ledger: Ledger) -> None:
    first = running(ledger)
    second = running(ledger, replaced=first)
    assert (ledger.releases.get(first).state, ledger.releases.get(second).state) == (
        STOPPING,
        RUNNING,
    )
    assert ledger.releases.get(first).cause == f"superseded by {second}"
    serving = ledger.releases.running("tiny")
    assert serving
    assert serving.id == second


def test_the_record_comes_back_as_it_was_written(ledger: Ledger) -> None:
    identity = running(ledger)
    assert ledger.releases.get(identity).release == a_release(identity)


def test_a_record_is_written_only_once(ledger: Ledger) -> None:
    identity = starting(ledger)
    ledger.releases.fail(identity, Cause.LOAD_TIMEOUT, a_release(identity))
    with pytest.raises(Failure, match="has a record already") as caught:
        ledger.releases.fail(identity, Cause.NO_FIT, a_release(identity))
    assert caught.value.cause is Cause.LOST_LOCK
    assert ledger.releases.get(identity).cause == Cause.LOAD_TIMEOUT


def test_fields_that_do_not_change_what_runs_are_written_into_the_record_of_what_serves(
    ledger: Ledger,
) -> None:
    row = ledger.releases.get(running(ledger))
    labelled = a_spec(labels={"tier": "gold"})
    ledger.releases.revise(row, labelled)
    after = ledger.releases.get(row.id)
    assert row.release
    assert after.release
    assert after.release.spec == ledger.releases.specs([row.id])[row.id] == labelled
    assert after.release == row.release.model_copy(update={"spec": labelled})
    ledger.releases.revise(after, a_spec(context=7))
    assert ledger.releases.get(row.id) == after, "another spec is another release"


def test_what_a_run_reaches_in_its_own_way_is_not_written_into_the_record(ledger: Ledger) -> None:
    container = a_container(host="gpu-1", address="ssh://alice@gpu-1", runtime="docker")
    identity = starting(ledger)
    ledger.releases.take_over(a_release(identity, plan=a_plan(container, release=identity)))
    overlaid = reached_at(ledger.releases.get(identity), {"gpu-1": "ssh://bob@gpu-1"})
    ledger.releases.revise(overlaid, a_spec(labels={"tier": "gold"}))
    after = ledger.releases.get(identity)
    assert after.plan
    assert [one.address for one in after.plan.containers] == ["ssh://alice@gpu-1"]


def test_each_start_after_a_death_stays_in_the_record(ledger: Ledger) -> None:
    identity = running(ledger)
    at = datetime(2026, 11, 21, tzinfo=UTC)
    every = [Restart(at=at, replicas=(number,), reason="exited: 137") for number in range(101)]
    for one in every:
        ledger.releases.add_restart(identity, one)
    expected = a_release(identity).model_copy(update={"restarts": tuple(every[1:])})
    assert ledger.releases.get(identity).release == expected
    ledger.releases.add_restart(begin(ledger), every[0])
    assert ledger.releases.of_model("tiny")[0].release is None


def test_a_release_that_runs_is_neither_given_up_nor_failed(ledger: Ledger) -> None:
    identity = running(ledger)
    assert not ledger.releases.give_up(identity, Cause.INTERRUPTED)
    ledger.releases.fail(identity, Cause.INTERRUPTED, a_release(identity))
    row = ledger.releases.get(identity)
    assert (row.state, row.cause) == (RUNNING, "")


@pytest.mark.parametrize("times", [1, 2])
def test_a_release_that_is_given_up_cannot_take_over(ledger: Ledger, times: int) -> None:
    identity = starting(ledger)
    assert all(ledger.releases.give_up(identity, Cause.INTERRUPTED) for _ in range(times))
    with pytest.raises(Failure) as caught:
        ledger.releases.take_over(a_release(identity))
    assert caught.value.cause is Cause.LOST_LOCK
    ledger.releases.fail(identity, Cause.INTERRUPTED)
    row = ledger.releases.get(identity)
    assert (row.state, row.cause, row.release) == (ReleaseState.ERROR, Cause.INTERRUPTED, None)


def test_a_take_over_that_fails_changes_nothing(ledger: Ledger) -> None:
    first = running(ledger)
    second = begin(ledger)  # still pending: it may not run yet
    with pytest.raises(Failure):
        ledger.releases.take_over(a_release(second, replaced=first))
    assert ledger.releases.get(first).state == RUNNING
    assert ledger.releases.get(second).release is None


def test_two_releases_of_a_model_never_run_at_once(ledger: Ledger) -> None:
    running(ledger)
    second = starting(ledger)
    with pytest.raises(Failure) as caught:
        ledger.releases.take_over(a_release(second, replaced=""))
    assert caught.value.cause is Cause.LOST_LOCK
    assert ledger.releases.get(second).state == STARTING


def test_a_predecessor_that_has_stopped_already_stays_as_it_is(ledger: Ledger) -> None:
    first = running(ledger)
    ledger.releases.move(first, STOPPING)
    running(ledger, replaced=first)
    assert ledger.releases.get(first).state == STOPPING


def test_a_release_that_fails_keeps_its_record_and_its_cause(ledger: Ledger) -> None:
    identity = starting(ledger)
    failure = FailureRecord(cause=Cause.LOAD_TIMEOUT, detail="900 s", suggestion="Wait.")
    ledger.releases.fail(identity, failure.cause, a_release(identity, failure=failure))
    row = ledger.releases.get(identity)
    assert (row.state, row.cause) == (ReleaseState.ERROR, Cause.LOAD_TIMEOUT)
    assert row.release
    assert row.release.failure == failure


def test_a_record_of_another_version_does_not_hide_its_release(ledger: Ledger, url: str) -> None:
    identity, foreign = running(ledger), {"shape": "of the future"}
    engine = open_database(url)
    with gate(engine) as connection:
        connection.execute(update(RELEASES).values(record=foreign))
    engine.dispose()
    row = ledger.releases.get(identity)
    assert (row.state, row.release, row.foreign_record) == (RUNNING, None, foreign)


def test_a_release_of_a_newer_moorage_is_managed_and_keeps_its_new_fields(
    ledger: Ledger, url: str
) -> None:
    identity, container = starting(ledger), a_container(address="ssh://gpu-1", runtime="docker")
    plan = a_plan(container)
    record = a_release(identity, plan=plan, profile=a_profile()).model_dump(mode="json")
    ledger.releases.take_over(a_release(identity))
    spec = {**record["spec"], "engine": {**record["spec"]["engine"], "new": 1}, "new": 1}
    inner = {name: {**record[name], "new": 1} for name in ("profile", "plan")}
    inner["plan"]["containers"][0]["new"] = 1
    written = {**record, **inner, "spec": spec, "new": 1}
    engine = open_database(url)
    with gate(engine) as connection:
        connection.execute(update(RELEASES).values(record=written, spec=spec))
    row = ledger.releases.get(identity)
    assert (row.foreign_record, row.plan) == (None, plan)
    assert [need.release for need in ledger.releases.needs()] == [identity]
    assert problems_of_content(url) == ()
    ledger.releases.readdress(identity, {container.host: "ssh://gpu-1.lan"})
    written["plan"]["containers"][0]["address"] = "ssh://gpu-1.lan"
    with reading(engine) as connection:
        assert connection.scalar(select(RELEASES.c.record)) == written
    engine.dispose()


def test_a_workload_of_another_version_can_still_be_found(ledger: Ledger, url: str) -> None:
    identity = starting(ledger)
    ledger.workloads.put(identity, a_workload(release=identity))
    written = a_workload().model_dump(mode="json", exclude={"release"})
    engine = open_database(url)
    with gate(engine) as connection:
        connection.execute(update(WORKLOADS).values(workload={**written, "new": 1}))
    engine.dispose()
    assert ledger.releases.get(identity).workloads == (a_workload(release=identity),)


def test_a_failed_release_that_still_holds_something_is_found(ledger: Ledger) -> None:
    with_workload, with_claim, clean, alive = (begin(ledger, f"m{n}") for n in range(4))
    ledger.workloads.put(with_workload, a_workload(release=with_workload))
    ledger.claims.commit(with_claim, (a_claim(),), a_fleet())
    ledger.workloads.put(alive, a_workload("other", release=alive))
    for identity in (with_workload, with_claim, clean):
        ledger.releases.fail(identity, Cause.INTERRUPTED)
    assert [row.id for row in ledger.releases.not_undone()] == [with_workload, with_claim]
    ledger.workloads.drop(a_workload().name)
    ledger.claims.hand_back(with_claim, "", ())
    assert ledger.releases.not_undone() == []


def test_nothing_runs_where_nothing_was_deployed(ledger: Ledger) -> None:
    assert ledger.releases.running("tiny") is None
    assert (ledger.releases.of_model("tiny"), ledger.releases.models()) == ([], [])


def test_releases_are_listed_by_model_by_state_and_those_that_are_current(ledger: Ledger) -> None:
    first = running(ledger)
    second = running(ledger, replaced=first)
    other = begin(ledger, "other")
    ledger.releases.move(first, SUPERSEDED)
    third = begin(ledger)
    assert [row.id for row in ledger.releases.of_model("tiny")] == [third, second, first]
    assert [row.id for row in ledger.releases.in_states([RUNNING, SUPERSEDED])] == [first, second]
    assert [row.id for row in ledger.releases.unfinished()] == [other, third]
    assert [one.row.id for one in ledger.overviews.current()] == [other, second, third]


@pytest.mark.parametrize(("failures", "read"), [(0, 2), (1, 2), (3, 4)])
def test_the_last_that_ran_is_found_without_all_older_records(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, failures: int, read: int
) -> None:
    monkeypatch.setattr(release_rows, "PAGE", 2)
    for _ in range(4):
        begin(ledger)
    last = starting(ledger)
    ledger.releases.take_over(ran(planned(a_spec(name="tiny"), 5)))
    for _ in range(failures):
        begin(ledger)
    decoded: list[str] = []

    def counted(row: Any, *more: Any) -> ReleaseRow:
        decoded.append(row.id)
        return release_of(row, *more)

    monkeypatch.setattr(release_rows, "release_of", counted)
    found = ledger.releases.last_that_ran("tiny")
    assert found
    assert (found.id, len(decoded)) == (last, read)
    assert ledger.releases.last_that_ran("other") is None


def test_workloads_belong_to_their_release_until_they_are_struck_out(ledger: Ledger) -> None:
    identity = starting(ledger)
    planned, started = a_workload("b"), a_workload("b", identity="7@1.0")
    for workload in (planned, a_workload("a"), started):
        ledger.workloads.put(identity, workload)
    assert ledger.releases.get(identity).workloads == (a_workload("a"), started)
    for _ in range(2):
        ledger.workloads.drop("b")
    assert ledger.releases.get(identity).workloads == (a_workload("a"),)


def test_what_is_written_survives_the_ledger_that_wrote_it(ledger: Ledger, url: str) -> None:
    identity = running(ledger)
    ledger.close()
    again = Ledger(url)
    assert again.releases.get(identity).release == a_release(identity)
    again.close()


def test_releases_are_found_by_how_their_ids_begin(ledger: Ledger) -> None:
    for name in ("tiny", "tiny", "tiny_2", "other"):
        begin(ledger, name)
    assert ledger.releases.ids("tiny.") == ["tiny.v1", "tiny.v2"]
    assert ledger.releases.ids("tiny_") == ["tiny_2.v1"], "an underscore is no wildcard"
    assert ledger.releases.ids("none") == []


def test_what_was_accepted_once_stays_readable(ledger: Ledger, url: str) -> None:
    identity, spec = running(ledger), {**a_spec().model_dump(mode="json"), "labels": {"a": "\a"}}
    record = {**a_release(identity).model_dump(mode="json"), "spec": spec}
    engine = open_database(url)
    with gate(engine) as connection:
        connection.execute(update(RELEASES).values(record=record, spec=spec))
    engine.dispose()
    row = ledger.releases.get(identity)
    assert row.release
    assert row.release.spec.labels == {"a": "\a"}
