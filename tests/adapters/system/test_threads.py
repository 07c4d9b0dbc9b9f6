from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from itertools import pairwise

import pytest
from prefect.exceptions import TerminationSignal
from pydantic import BaseModel, computed_field
from pydantic_core import PydanticSerializationError, SchemaError, SchemaValidator
from pydantic_core.core_schema import enum_schema

from moorage.adapters.system import threads
from moorage.adapters.system.threads import in_thread, run_uninterrupted, was_interrupted

NUMBER: ContextVar[int] = ContextVar("number", default=0)


async def test_a_call_runs_in_another_thread_with_its_arguments() -> None:
    def work(a: int, *, b: int) -> tuple[int, threading.Thread]:
        return a + b, threading.current_thread()

    total, thread = await in_thread(work, 1, b=2)
    assert total == 3
    assert thread is not threading.current_thread()
    assert thread.daemon


async def test_a_call_sees_the_context_of_its_caller() -> None:
    NUMBER.set(7)
    assert await in_thread(NUMBER.get) == 7


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_error_comes_back_to_the_caller(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(in_thread(fail))


async def test_an_error_that_a_future_cannot_carry_comes_back_too() -> None:
    with pytest.raises(RuntimeError):
        async with asyncio.timeout(1):
            await in_thread(next, iter(()))


async def test_calls_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=5)
    assert sorted(await asyncio.gather(*(in_thread(meeting.wait) for _ in range(3)))) == [0, 1, 2]


async def test_a_call_that_outlives_its_deadline_does_not_hold_up_the_flow() -> None:
    ended = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await in_thread(ended.wait, 5)
    assert not ended.is_set()
    ended.set()  # its late answer must not disturb the loop
    await asyncio.sleep(0.02)


async def test_who_is_cancelled_waits_for_an_effect_that_is_under_way() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), list[str]()

    def effect() -> None:
        begun.set()
        may_end.wait(5)
        done.append("effect")

    acting = asyncio.create_task(run_uninterrupted(effect))
    await in_thread(begun.wait, 5)
    acting.cancel()
    threading.Timer(0.1, may_end.set).start()
    with pytest.raises(asyncio.CancelledError):
        await acting
    done.append("undo")
    assert done == ["effect", "undo"]


async def test_an_effect_that_had_not_begun_when_a_signal_came_never_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for it either."""
    late, done = list[threading.Thread](), list[str]()
    begin = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", begin)
        late.append(thread)
        raise Signal

    monkeypatch.setattr(threads, "EFFECT_SECONDS", 5)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    before = time.monotonic()
    with pytest.raises(Signal):
        await run_uninterrupted(done.append, "effect")
    assert time.monotonic() - before < 2
    late[0].start()
    late[0].join()
    assert done == []


async def test_an_effect_gives_what_it_returns_and_raises_what_it_raises() -> None:
    assert await run_uninterrupted(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_uninterrupted(lambda: 1 // 0)


class Signal(BaseException):
    """As Prefect raises one where SIGTERM arrives."""


@pytest.mark.parametrize(
    ("inside", "interrupted"),
    [
        ([ValueError()], False),
        ([Signal()], True),
        ([Signal(), ValueError()], True),
        ([Signal(), KeyError(), ValueError()], True),
        ([asyncio.CancelledError(), TimeoutError()], False),
    ],
)
def test_what_a_signal_became_is_still_an_interruption(
    inside: list[BaseException], interrupted: bool
) -> None:
    for before, after in pairwise(inside):
        after.__context__ = before
    assert was_interrupted(inside[-1]) is interrupted


@pytest.mark.parametrize(
    ("inside", "interrupted"),
    [(TerminationSignal(signal=15), True), (KeyboardInterrupt(), True), (KeyError("x"), False)],
    ids=repr,
)
def test_what_pydantic_made_of_a_signal_is_still_an_interruption(
    inside: BaseException, interrupted: bool
) -> None:
    class Member:
        @property
        def value(self) -> str:
            raise inside

    class Model(BaseModel):
        @computed_field
        def value(self) -> str:
            raise inside

    with pytest.raises(SchemaError) as caught:
        SchemaValidator(enum_schema(Member, [Member()]))
    assert was_interrupted(caught.value) is interrupted
    with pytest.raises(PydanticSerializationError) as written:
        Model().model_dump_json()
    assert was_interrupted(written.value) is interrupted
