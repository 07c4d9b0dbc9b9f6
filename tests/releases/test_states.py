from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.releases.states import (
    FINAL,
    SERVING,
    TRANSITIONS,
    UNFINISHED,
    ReleaseState,
    Stay,
    Transition,
    outage,
    stays,
)
from tests.builders import NOON

STATES = st.sampled_from(ReleaseState)


def reachable(state: ReleaseState) -> set[ReleaseState]:
    seen: set[ReleaseState] = set()
    rest = {state}
    while rest:
        seen |= rest
        rest = {after for before in rest for after in TRANSITIONS[before]} - seen
    return seen


@pytest.mark.parametrize("state", ReleaseState)
def test_every_state_can_be_reached_and_can_end(state: ReleaseState) -> None:
    assert state in reachable(ReleaseState.PENDING)
    assert FINAL & reachable(state)


def test_the_final_states_are_these_and_lead_nowhere() -> None:
    assert {ReleaseState.STOPPED, ReleaseState.SUPERSEDED, ReleaseState.ERROR} == FINAL
    assert all(reachable(state) == {state} for state in FINAL)


@pytest.mark.parametrize("state", sorted(set(ReleaseState) - FINAL))
def test_whatever_is_not_final_can_fail(state: ReleaseState) -> None:
    assert ReleaseState.ERROR in TRANSITIONS[state]


def test_a_state_is_final_or_serving_or_asleep_or_somebodys_work() -> None:
    asleep = {ReleaseState.ASLEEP}
    assert set(ReleaseState) == FINAL | SERVING | UNFINISHED | asleep
    assert len(FINAL) + len(SERVING) + len(UNFINISHED) + 1 == len(ReleaseState)


def test_a_release_that_made_room_can_serve_again() -> None:
    assert ReleaseState.RUNNING in TRANSITIONS[ReleaseState.STOPPING]


def test_a_release_that_is_out_of_sight_can_be_seen_again() -> None:
    assert ReleaseState.RUNNING in TRANSITIONS[ReleaseState.UNREACHABLE]


def test_no_state_leads_to_itself() -> None:
    assert not any(state in after for state, after in TRANSITIONS.items())


@given(st.lists(STATES))
def test_whatever_is_tried_a_release_gets_only_where_the_table_leads(
    tried: list[ReleaseState],
) -> None:
    state, ended = ReleaseState.PENDING, False
    for wanted in tried:
        if wanted in TRANSITIONS[state]:
            assert not ended
            state = wanted
        ended = state in FINAL
    assert state in reachable(ReleaseState.PENDING)


@given(STATES, st.data())
def test_from_every_state_some_way_ends(state: ReleaseState, data: st.DataObject) -> None:
    """However the first steps go, there is a way out of what comes after."""
    for _ in range(data.draw(st.integers(0, 12))):
        if not TRANSITIONS[state]:
            break
        state = data.draw(st.sampled_from(sorted(TRANSITIONS[state])))
    assert FINAL & reachable(state)


S = ReleaseState


def at(seconds: float, before: S, after: S, cause: str = "", run: str = "run-1") -> Transition:
    return Transition(
        release="tiny.v1",
        model="tiny",
        sequence=1,
        before=before,
        after=after,
        at=NOON + timedelta(seconds=seconds),
        cause=cause,
        flow_run_id=run,
    )


def test_each_state_lasts_until_the_next_one_begins() -> None:
    stayed = stays(
        NOON, "run-1", [at(2, S.PENDING, S.ANALYZING), at(5, S.ANALYZING, S.ERROR, "gated-model")]
    )
    assert [(stay.state, stay.seconds, stay.cause) for stay in stayed] == [
        (S.PENDING, 2.0, ""),
        (S.ANALYZING, 3.0, ""),
        (S.ERROR, None, "gated-model"),
    ]


def test_a_release_that_was_just_begun_is_pending() -> None:
    assert stays(NOON, "run-1", []) == (Stay(state=S.PENDING, since=NOON, flow_run_id="run-1"),)


@given(st.lists(st.integers(0, 10_000), max_size=9).map(sorted))
def test_the_times_in_all_states_add_up_to_the_whole(seconds: list[int]) -> None:
    stayed = stays(NOON, "", [at(one, S.RUNNING, S.UNREACHABLE) for one in seconds])
    assert sum(stay.seconds or 0 for stay in stayed) == (seconds[-1] if seconds else 0)


CLOSED, BACK = (S.RUNNING, S.STOPPING), (S.STOPPING, S.RUNNING)


@pytest.mark.parametrize(
    ("moves", "seconds"),
    [
        pytest.param([], 0, id="it serves"),
        pytest.param([at(10, *CLOSED)], 90, id="it never came back"),
        pytest.param([at(10, *CLOSED), at(14.5, *BACK)], 4.5, id="it was started again"),
        pytest.param([at(-9, *CLOSED), at(-2, *BACK)], 0, id="that was an earlier attempt"),
        pytest.param([at(-9, *CLOSED), at(-2, *BACK), at(98, *CLOSED)], 2, id="only this one"),
        pytest.param([at(10, *CLOSED), at(12, S.STOPPING, S.SUPERSEDED)], 90, id="it ended"),
    ],
)
def test_an_outage_lasts_from_the_last_stop_until_somebody_serves(
    moves: list[Transition], seconds: float
) -> None:
    assert outage(moves, NOON, NOON + timedelta(seconds=100)) == seconds


def test_who_asked_is_told_where_anybody_wrote_it_down() -> None:
    move = at(100, S.PENDING, S.ERROR, "interrupted", "a").model_copy(
        update={"requested_by": "ann@build, command line"}
    )
    stayed = stays(NOON, "a", [move])
    assert [one.requested_by for one in stayed] == ["ann@build, command line"] * 2
