"""Which flow runs have ended, though Prefect shows them as running."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.adapters.ledger.locks import ASKS, this_process
from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.releases.states import ReleaseState
from moorage.spec.lifecycle import MOST_APPROVAL_SECONDS
from tasks import prefect_runs
from tasks.context import ledger
from tasks.prefect_runs import close_abandoned_questions, final_states
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


@pytest.mark.parametrize("taken", [True, False])
async def test_who_was_killed_while_it_waited_for_approval_is_ended_until_the_server_knows(
    monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    ended: dict[str, Any] = {}

    async def end_runs(ends: Mapping[str, Any]) -> bool:
        ended.update(ends)
        return taken

    monkeypatch.setattr(prefect_runs, "_end_runs", end_runs)
    killed = this_process().model_copy(update={"started_at": 0})
    ledger().locks.take_all([f"{ASKS}{RUN}"], "token", killed)
    await close_abandoned_questions()
    assert [(run, state.name) for run, state in ended.items()] == [(RUN, "Crashed")]
    assert ledger().locks.abandoned(ASKS) == ([] if taken else [f"{ASKS}{RUN}"])


@pytest.mark.parametrize(("seconds", "asked"), [(-60, [RUN]), (60, [])])
async def test_a_run_that_the_server_does_not_know_is_asked_about_while_it_may_still_wait(
    monkeypatch: pytest.MonkeyPatch, seconds: float, asked: list[str]
) -> None:
    runs = list[str]()

    async def end_runs(ends: Mapping[str, Any]) -> bool:
        runs.extend(ends)
        return False

    monkeypatch.setattr(prefect_runs, "_end_runs", end_runs)
    elsewhere = this_process().model_copy(update={"machine": "another"})
    ago = MOST_APPROVAL_SECONDS + seconds
    ledger().locks.take_all([f"{ASKS}{RUN}"], "token", elsewhere, lease_seconds=-ago)
    await close_abandoned_questions()
    assert runs == asked
