"""The end of a flow run is known, also where Prefect's answer to it got lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.exceptions import MissingResult
from prefect.states import Completed

from flows import flow_context as ending
from flows.flow_context import keep_result, with_result
from flows.retire_model import retire_model
from moorage.common.failures import Cause, Failure
from tests.e2e.workplace import REPOSITORY
from tests.lost_answers import lose_answers

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("flows_run_there")]


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths to which the answer to a run's end was lost."""
    return lose_answers(monkeypatch, "COMPLETED", "FAILED")


@flow(name="answer", persist_result=False)
@keep_result
async def answer(number: int) -> State[int]:
    return Completed(name="Unchanged", message=f"it is {number}", data=number)


@flow(name="plain", persist_result=False)
@keep_result
async def plain(number: int) -> int:
    return number


def ended(begin: Callable[[], Awaitable[State[Any]]]) -> State[Any]:
    async def main() -> State[Any]:
        return await begin()

    return asyncio.run(main())


def test_the_state_that_prefect_gives_back_then_has_no_result(lost: list[str]) -> None:
    state = ended(lambda: answer(42, return_state=True))
    assert (len(lost), state.name, state.message) == (1, "Unchanged", "it is 42")
    with pytest.raises(MissingResult):
        asyncio.run(state.aresult())


@pytest.mark.parametrize("run", [answer, plain])
def test_a_result_whose_answer_got_lost_is_there(run: Any, lost: list[str]) -> None:
    state = with_result(ended(lambda: run(42, return_state=True)))
    assert (len(lost), asyncio.run(state.aresult())) == (1, 42)


@pytest.mark.usefixtures("own_home")
def test_a_failure_whose_answer_got_lost_keeps_its_cause(lost: list[str]) -> None:
    state = with_result(ended(lambda: retire_model("nobody", return_state=True)))
    assert (len(lost), state.is_failed()) == (1, True)
    with pytest.raises(Failure) as caught:
        asyncio.run(state.aresult())
    assert caught.value.cause is Cause.UNKNOWN_RELEASE


def test_an_end_that_prefect_tells_is_its_own_and_nothing_is_kept() -> None:
    before = dict(ending._ends)
    state = with_result(ended(lambda: answer(42, return_state=True)))
    assert asyncio.run(state.aresult()) == 42
    assert ending._ends == before


def test_every_flow_is_remembered() -> None:
    text = "".join(path.read_text() for path in (REPOSITORY / "flows").glob("*.py"))
    assert text.count("\n@flow(") == text.count(")\n@keep_result\nasync def ") > 8
