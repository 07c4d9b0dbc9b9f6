from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.releases.states import EDGES, FINAL, SERVING, TRANSITIONS, UNFINISHED, ReleaseState

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


def test_a_state_is_final_or_serving_or_somebodys_work() -> None:
    assert set(ReleaseState) == FINAL | SERVING | UNFINISHED
    assert len(FINAL) + len(SERVING) + len(UNFINISHED) == len(ReleaseState)


def test_a_release_that_made_room_can_serve_again() -> None:
    assert ReleaseState.RUNNING in TRANSITIONS[ReleaseState.STOPPING]


def test_a_release_that_is_out_of_sight_can_be_seen_again() -> None:
    assert ReleaseState.RUNNING in TRANSITIONS[ReleaseState.UNREACHABLE]


def test_every_edge_is_there_once_and_says_when() -> None:
    assert len({(edge.before, edge.after) for edge in EDGES}) == len(EDGES)
    assert all(edge.when and edge.before != edge.after for edge in EDGES)


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
