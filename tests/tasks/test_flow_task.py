"""Steps as task runs of Prefect, and without a flow run."""

from __future__ import annotations

import asyncio
import pickle
import weakref
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from prefect.states import Completed, Crashed, Failed

from moorage.common.failures import Cause, Failure
from tasks import flow_task as module
from tasks.flow_task import FlowTask, flow_task
from tasks.survey import survey_host

AWAY = Failure(Cause.HUB_UNAVAILABLE, "no answer")


class Flaky:
    """Fails so often before it answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    async def __call__(self, name: str, suffix: str = "!") -> str:
        if self.failures:
            raise self.failures.pop(0)
        return name + suffix


def task_of(work: Any, **options: Any) -> FlowTask[..., str]:
    async def run(name: str, suffix: str = "!") -> str:
        return str(await work(name, suffix))

    return flow_task("work", "work on {name}", **options)(run)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wait_exponential_jitter", lambda _: lambda _: 0)


async def test_without_a_flow_run_it_is_called_as_it_is() -> None:
    assert await task_of(Flaky())("tiny", suffix="?") == "tiny?"


async def test_what_may_pass_is_tried_again_where_the_task_says_so() -> None:
    assert await task_of(Flaky(AWAY, AWAY, AWAY), retried=True)("tiny") == "tiny!"
    with pytest.raises(Failure, match="no answer"):
        await task_of(Flaky(*[AWAY] * 4), retried=True)("tiny")
    with pytest.raises(Failure, match="no answer"):
        await task_of(Flaky(AWAY))("tiny")


async def test_whoever_listens_hears_that_it_is_tried_again_and_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = list[str]()
    monkeypatch.setattr(module, "tell", notes.append)
    with pytest.raises(Failure, match="no answer"):
        await task_of(Flaky(*[AWAY] * 4), retried=True)("tiny")
    assert notes == [f"work is tried again: {AWAY}"] * 3


async def test_a_mistake_is_not_tried_again() -> None:
    with pytest.raises(ValueError, match="ours"):
        await task_of(Flaky(ValueError("ours")), retried=True)("tiny")


async def test_an_attempt_has_a_time_limit() -> None:
    async def slow(*_: str) -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await task_of(slow, timeout_seconds=0.01)("tiny")


def test_a_run_is_named_after_the_arguments() -> None:
    assert task_of(Flaky()).run_name(("tiny",), {}) == "work on tiny"
    assert task_of(Flaky()).run_name((), {"suffix": "", "name": "tiny"}) == "work on tiny"


def test_another_process_finds_it_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(survey_host)) is survey_host


def test_prefect_neither_keeps_nor_caches_results_and_waits_longer_and_longer() -> None:
    task = task_of(Flaky(), retried=True)._task
    assert (task.persist_result, task.retries) == (False, 3)
    assert task.retry_delay_seconds == [1, 2, 4]
    assert task_of(Flaky())._task.retries == 0


@pytest.mark.parametrize("cause", Cause)
def test_the_taxonomy_decides_what_is_tried_again(cause: Cause) -> None:
    assert _retried(Failed(data=Failure(cause, ""))) is cause.retryable


def test_a_failure_that_was_wrapped_as_a_result_is_found() -> None:
    assert _retried(Failed(data=Mock(result=AWAY)))


@pytest.mark.parametrize(
    "state",
    [Failed(data=ValueError("a mistake of ours")), Crashed(), Failed(data=None), Completed()],
)
def test_nothing_else_is_tried_again(state: Any) -> None:
    assert not _retried(state)


def _retried(state: Any) -> bool:
    return module._is_retryable(Mock(), Mock(), state)


def test_tasks_at_the_same_time_come_after_the_same_one_and_before_the_next() -> None:
    chain, (place, image, stage, launch) = module._Chain("run"), (uuid4() for _ in range(4))

    def last() -> set[Any]:
        return {state.state_details.task_run_id for state in chain.last}

    chain.append((), place, ())
    both = tuple(chain.last)
    chain.append(both, image, ())
    assert last() == {image}
    chain.append(both, stage, ())
    assert last() == {image, stage}
    chain.append(tuple(chain.last), launch, ())
    assert last() == {launch}
    chain.append(tuple(chain.last), None, ())
    assert last() == {launch}, "what ran in another process leaves no edge"


def test_a_result_keeps_its_address_as_long_as_the_run_goes_on() -> None:
    """Prefect would take what comes to lie there for that result, and draw an edge."""
    chain, result = module._Chain("run"), Mock()
    chain.append((), uuid4(), result)
    kept = weakref.ref(result)
    del result
    assert kept() is not None
