"""Which flow runs have ended, though Prefect shows them as running."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.releases.states import ReleaseState
from tasks.context import ledger
from tasks.prefect_runs import final_states
from tests.builders import REVISION, a_spec

pytestmark = pytest.mark.usefixtures("own_home")

RUN = "00000000-0000-0000-0000-000000000001"
LATER = timedelta(minutes=1)
TO_THE_END = (
    *(ReleaseState.ANALYZING, ReleaseState.SCHEDULED, ReleaseState.DOWNLOADING),
    *(ReleaseState.STARTING, ReleaseState.RUNNING),
)


def led(*states: ReleaseState) -> None:
    """A run has moved a release through states."""
    with writing_as(Author(RUN)):
        release = ledger().releases.begin(a_spec(name="tiny"), REVISION, RUN)
        for state in states:
            ledger().releases.move(release, state)


def over(after: timedelta = LATER) -> str:
    ends = final_states([RUN], datetime.now(UTC) + after)
    return str(ends[RUN].name) if ends else ""


@pytest.mark.parametrize(
    ("states", "end"),
    [
        (TO_THE_END, "Completed"),
        ((ReleaseState.ANALYZING, ReleaseState.ERROR), "Crashed"),
        ((ReleaseState.ANALYZING,), ""),
    ],
)
def test_a_run_is_what_became_of_its_release(states: tuple[ReleaseState, ...], end: str) -> None:
    led(*states)
    assert over() == end


def test_a_run_that_still_works_or_has_just_ended_is_left_alone() -> None:
    led(*TO_THE_END)
    assert over(-LATER) == ""
    with ledger().locks.holding("tiny", wait_seconds=0):
        assert over() == ""
    assert over() == "Completed"


def test_a_run_that_moved_nothing_is_left_alone() -> None:
    assert over() == ""
