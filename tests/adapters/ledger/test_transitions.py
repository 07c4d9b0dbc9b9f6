"""Nothing moves a release but a transition that is allowed, whoever writes, and however many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DatabaseError

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.database import open_database
from moorage.adapters.ledger.tables import ALLOWED
from moorage.adapters.ledger.transitions import Author, Change, writing_as
from moorage.common.failures import Cause, Failure
from moorage.releases.states import FINAL, TRANSITIONS, ReleaseState, Transition
from tests.adapters.ledger.team import Team
from tests.builders import REVISION, a_claim, a_fleet, a_release, a_spec

S = ReleaseState
PAIRS = [(before, after) for before in S for after in S if before != after]
LAWFUL = {(before, after) for before, states in TRANSITIONS.items() for after in states}


@pytest.fixture
def engine(url: str, ledger: Ledger) -> Iterator[Engine]:  # noqa: ARG001
    engine = open_database(url)
    yield engine
    engine.dispose()


def begin(ledger: Ledger, name: str = "tiny") -> str:
    return ledger.releases.begin(a_spec(name=name), REVISION, "begun by")


def way(to: ReleaseState) -> list[ReleaseState]:
    """A shortest way from `pending`."""
    ways: list[list[ReleaseState]] = [[S.PENDING]]
    for one in ways:
        if one[-1] == to:
            return one[1:]
        ways += [[*one, after] for after in sorted(TRANSITIONS[one[-1]]) if after not in one]
    raise AssertionError(to)


def brought(ledger: Ledger, to: ReleaseState, name: str = "tiny") -> str:
    identity = begin(ledger, name)
    for state in way(to):
        ledger.releases.move(identity, state)
    return identity


def raw(engine: Engine, statement: str, **values: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def test_the_database_allows_what_the_table_of_the_code_allows(engine: Engine) -> None:
    with engine.connect() as connection:
        rows = connection.execute(select(ALLOWED)).all()
    assert {(row.from_state, row.to_state) for row in rows} == LAWFUL


def test_a_state_is_not_changed_behind_the_log(ledger: Ledger, engine: Engine) -> None:
    for number, (before, after) in enumerate(PAIRS):
        identity = brought(ledger, before, f"m{number}")
        with pytest.raises(DatabaseError, match="no transition tells of this change"):
            raw(engine, "UPDATE releases SET state = :to WHERE id = :id", to=after, id=identity)
        assert ledger.releases.get(identity).state == before


def test_no_release_begins_in_the_middle(ledger: Ledger, engine: Engine) -> None:
    begin(ledger)
    copied = "UPDATE releases SET number = 7"
    raw(engine, copied)
    with pytest.raises(DatabaseError, match="a release begins as pending"):
        raw(
            engine,
            "INSERT INTO releases (id, model, number, state, spec_digest, revision, flow_run_id,"
            " cause, created_at, updated_at, spec) SELECT 'tiny.v8', model, 8, 'running',"
            " spec_digest, revision, flow_run_id, cause, created_at, updated_at, spec"
            " FROM releases",
        )


LOG = (
    "INSERT INTO transitions (release, sequence, from_state, to_state, cause, at, flow_run_id)"
    " VALUES (:id, 1, :before, :after, '', '2026-03-01 12:00:00', '')"
)


def test_a_run_is_known_by_what_it_moved(ledger: Ledger) -> None:
    begin(ledger)
    moved = begin(ledger, "other")
    with writing_as(Author("a run")):
        ledger.releases.move(moved, S.ANALYZING)
        ledger.releases.move(moved, S.SCHEDULED)
    assert [row.id for row in ledger.releases.moved_by("a run")] == [moved]
    assert ledger.releases.moved_by("another") == []


def test_what_is_not_allowed_is_not_even_logged(ledger: Ledger, engine: Engine) -> None:
    identity = begin(ledger)
    for before, after in PAIRS:
        if (before, after) not in LAWFUL:
            with pytest.raises(DatabaseError, match=r"(?i)foreign key"):
                raw(engine, LOG, id=identity, before=before, after=after)
    assert ledger.releases.transitions(identity) == ()


def test_a_transition_that_leaves_another_state_moves_nothing(
    ledger: Ledger, engine: Engine
) -> None:
    identity = begin(ledger)
    raw(engine, LOG, id=identity, before=S.STARTING, after=S.RUNNING)
    with pytest.raises(DatabaseError, match="no transition tells of this change"):
        raw(engine, "UPDATE releases SET state = 'running' WHERE id = :id", id=identity)


@pytest.mark.parametrize("before", sorted(S))
def test_every_move_is_made_or_refused_as_the_table_says(
    ledger: Ledger, before: ReleaseState
) -> None:
    for number, after in enumerate(S):
        identity = brought(ledger, before, f"m{number}")
        if after in TRANSITIONS[before]:
            ledger.releases.move(identity, after, "why")
            assert ledger.releases.get(identity).state == after
        else:
            with pytest.raises(Failure, match=f"is {before} and cannot become {after}") as caught:
                ledger.releases.move(identity, after)
            assert caught.value.cause is Cause.LOST_LOCK
            assert ledger.releases.get(identity).state == before


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(S), max_size=12))
def test_whatever_is_tried_the_log_tells_the_whole_way(ledger: Ledger, tried: list[S]) -> None:
    identity = begin(ledger)
    for state in tried:
        with suppress(Failure):
            ledger.releases.move(identity, state, f"to {state}")
    log = ledger.releases.transitions(identity)
    states = [S.PENDING, *(one.after for one in log)]
    assert [(one.before, one.after) for one in log] == list(pairwise(states))
    assert {(one.before, one.after) for one in log} <= LAWFUL
    assert [one.sequence for one in log] == list(range(1, len(log) + 1))
    assert [one.at for one in log] == sorted(one.at for one in log)
    assert ledger.releases.get(identity).state == states[-1]
    if states[-1] not in FINAL:
        ledger.releases.move(identity, S.ERROR)  # else two examples would serve one name


def race(number: int, url: str, release: str, targets: list[str]) -> str:
    """Move a release; how it went."""
    with closing(Ledger(url)) as ledger:
        try:
            ledger.releases.move(release, S(targets[number % len(targets)]), f"by {number}")
        except Failure as failure:
            return str(failure.cause)
        return "won"


@pytest.mark.parametrize(
    ("before", "targets"),
    [
        (S.STARTING, [S.RUNNING]),
        (S.STARTING, [S.RUNNING, S.ERROR]),
        (S.STOPPING, [S.STOPPED, S.SUPERSEDED, S.ERROR]),
    ],
)
def test_of_writers_who_race_exactly_one_wins(
    url: str, opened: Callable[[], Ledger], team: Team, before: S, targets: list[S]
) -> None:
    ledger = opened()
    for number in range(5):
        release = brought(ledger, before, f"m{number}")
        outcomes = team(race, url, release, list(map(str, targets)))
        after = ledger.releases.transitions(release)[len(way(before)) :]
        # One that runs may still fail: that is a second move, and a lawful one.
        assert outcomes.count("won") == len(after)
        assert after[0].before == before
        assert set(outcomes) <= {"won", str(Cause.LOST_LOCK)}
        assert all((one.before, one.after) in LAWFUL for one in after)
        if len(targets) == 1 or before == S.STOPPING:
            assert outcomes.count("won") == 1


class Late(Change):
    """A writer that saw a state which is not there any more, as one without the gate could."""

    def state_of(self, release: str) -> ReleaseState:
        super().state_of(release)
        return S.STARTING


def test_who_saw_a_state_that_is_gone_changes_nothing_even_without_the_gate(
    ledger: Ledger, engine: Engine
) -> None:
    identity = brought(ledger, S.STOPPING)
    before = ledger.releases.transitions(identity)
    with pytest.raises(Failure, match="is not starting any more") as caught, engine.begin() as one:
        Late(one).move(identity, S.RUNNING)
    assert caught.value.cause is Cause.LOST_LOCK
    assert ledger.releases.get(identity).state == S.STOPPING
    assert ledger.releases.transitions(identity) == before


def test_who_did_it_is_logged(ledger: Ledger) -> None:
    identity = begin(ledger)
    with writing_as(Author("run-2")):
        ledger.releases.move(identity, S.ANALYZING)
    ledger.releases.move(identity, S.ERROR, "by hand")
    log = ledger.releases.transitions(identity)
    assert [(one.flow_run_id, one.cause) for one in log] == [("run-2", ""), ("", "by hand")]


def test_the_author_hears_of_what_is_committed_with_the_hosts_concerned(ledger: Ledger) -> None:
    heard: list[Transition] = []
    first, second = begin(ledger), begin(ledger)
    with writing_as(Author("run-1", heard.append)):
        ledger.claims.commit(first, (a_claim(),), a_fleet())
        with pytest.raises(Failure):
            ledger.releases.move(second, S.RUNNING)
        ledger.releases.end(first, S.ERROR, "interrupted")
    assert [(one.release, one.after, one.hosts) for one in heard] == [
        (first, S.SCHEDULED, ("gpu-1",)),
        (first, S.ERROR, ("gpu-1",)),
    ]
    assert ledger.claims.all() == ()


def test_what_is_taken_back_is_not_told(ledger: Ledger) -> None:
    heard: list[Transition] = []
    first, second = brought(ledger, S.RUNNING), begin(ledger)
    with writing_as(Author("run-1", heard.append)), pytest.raises(Failure):
        ledger.releases.take_over(a_release(second, replaced=first))
    assert heard == []
    assert ledger.releases.get(first).state == S.RUNNING
