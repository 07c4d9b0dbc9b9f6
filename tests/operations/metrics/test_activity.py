"""What counts of the transitions and records of releases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from moorage.operations.metrics.activity import (
    BUCKETS,
    EVENTS,
    WAKE,
    Activity,
    Durations,
    Event,
    Outcome,
)
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome
from moorage.operations.reconcile.counts import RUN, counts_of
from moorage.releases.states import TRANSITIONS, ReleaseState, Transition
from tests.builders import NOON

S = ReleaseState


def moved(
    before: ReleaseState, after: ReleaseState, model: str = "tiny", at: float = 0.0
) -> Transition:
    when = NOON + timedelta(seconds=at)
    return Transition(
        release=f"{model}.v1", model=model, sequence=1, before=before, after=after, at=when
    )


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        (S.STARTING, S.RUNNING, Event.DEPLOYED),
        (S.PENDING, S.ERROR, Event.FAILED),
        (S.STARTING, S.ERROR, Event.FAILED),
        (S.RUNNING, S.ERROR, Event.LOST),
        (S.UNREACHABLE, S.ERROR, Event.LOST),
        (S.STOPPING, S.ASLEEP, Event.SLEPT),
        (S.WAKING, S.RUNNING, Event.WOKEN),
        (S.STOPPING, S.RUNNING, None),
        (S.STOPPING, S.STOPPED, None),
        (S.STOPPING, S.SUPERSEDED, None),
        (S.RUNNING, S.UNREACHABLE, None),
        (S.WAKING, S.ASLEEP, None),
    ],
)
def test_a_transition_is_one_event_or_none(
    before: ReleaseState, after: ReleaseState, event: Event | None
) -> None:
    activity = Activity()
    assert activity.add_transition(moved(before, after)) == event
    assert activity.events == {("tiny", one): int(one == event) for one in Event}


def test_every_event_is_a_transition_that_there_is() -> None:
    edges = {(before, after) for before, states in TRANSITIONS.items() for after in states}
    assert edges >= EVENTS.keys()
    assert {edge for edge in edges if edge[1] == S.ERROR} <= EVENTS.keys()


def test_how_long_a_model_took_to_wake_is_a_phase() -> None:
    activity = Activity()
    for one in (
        moved(S.ASLEEP, S.WAKING),
        moved(S.ASLEEP, S.WAKING, "other", at=1),
        moved(S.WAKING, S.ASLEEP, "other", at=2),
        moved(S.WAKING, S.RUNNING, at=7),
    ):
        activity.add_transition(one)
    assert activity.phases.keys() == {WAKE}
    assert activity.phases[WAKE].sum == 7
    assert activity.phases[WAKE].cumulative[-1] == 1


def test_the_models_of_one_shots_are_in_no_series_of_their_own() -> None:
    activity = Activity()
    name = "run-tiny-1a2b3c"
    assert activity.add_transition(moved(S.STARTING, S.RUNNING, name)) == Event.DEPLOYED
    activity.add_outcome(Outcome(model=name, phases=(("verify", 1.0),), downtime_seconds=2.0))
    assert not activity.events
    assert not activity.downtime
    assert activity.phases["verify"].sum == 1


def test_records_are_added_up() -> None:
    activity = Activity()
    phases = (("stage", 2.0), ("verify", 30.0))
    activity.add_outcome(Outcome(model="tiny", phases=phases, downtime_seconds=1.5))
    failed = Outcome(
        model="tiny", phases=(("stage", 4.0),), cause="no-fit", refusals={"ram": 3, "port": 1}
    )
    activity.add_outcome(failed)
    activity.add_outcome(failed)
    assert activity.downtime == {"tiny": 1.5}
    assert activity.causes == {"no-fit": 2}
    assert activity.refusals == {"ram": 6, "port": 2}
    assert {name: one.sum for name, one in activity.phases.items()} == {"stage": 10, "verify": 30}


@pytest.mark.parametrize(
    ("seconds", "first"),
    [(0.0, 0.1), (0.1, 0.1), (0.11, 0.25), (1800.0, 1800.0), (9e9, BUCKETS[-1])],
)
def test_a_duration_counts_from_the_first_bound_that_holds_it(seconds: float, first: float) -> None:
    durations = Durations()
    durations.add(seconds)
    assert durations.cumulative == tuple(int(bound >= first) for bound in BUCKETS)


def test_a_run_of_reconciling_counts_what_it_did_and_itself() -> None:
    def outcome(kind: ActionKind, *, done: bool) -> ActionOutcome:
        return ActionOutcome(action=Action(kind=kind, reason="so"), done=done)

    restarted, failed = (outcome(ActionKind.RESTART, done=done) for done in (True, False))
    waits = outcome(ActionKind.WAIT, done=False)
    counted = counts_of([restarted, failed, restarted, waits], NOON)
    assert {(one.kind, one.done, one.not_done) for one in counted} == {
        (RUN, 1, 0),
        ("restart", 2, 1),
        ("wait", 0, 1),
    }
    assert {one.latest for one in counted} == {NOON}
