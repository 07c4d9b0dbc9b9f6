"""What a load measures of engines that stream, that do not, and that fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from moorage.adapters.engines.engine_http import Question
from moorage.adapters.engines.load_client import sample_of, send_load
from moorage.readiness.acceptance import Sample
from tests.adapters.engines.test_engine_stream import HEAD, Send, chat, engine, event

PATIENCE_SECONDS = 30.0


def load(
    url: str, count: int, concurrency: int = 2, seconds: float = PATIENCE_SECONDS
) -> list[Sample]:
    """Send so many requests of at most 8 tokens."""
    question = Question(url, "POST", {"max_tokens": 8})
    return asyncio.run(send_load([question] * count, concurrency, seconds))


def streams(send: Send) -> None:
    send(HEAD + chat("a") + chat("b"))
    send(event({"choices": [], "usage": {"completion_tokens": 5}}))


def at_once(send: Send) -> None:
    send(HEAD + chat("ok"))


def thinks(send: Send) -> None:
    thoughts = ({"reasoning": "a"}, {"reasoning_content": "b"}, {"content": "c"})
    send(HEAD + b"".join(event({"choices": [{"delta": one}]}) for one in thoughts))


def silent(send: Send) -> None:
    send(HEAD + event({"choices": [], "usage": {"completion_tokens": 0}}))


def broken(send: Send) -> None:
    send(b"HTTP/1.1 503 Service Unavailable\r\n\r\nfull")


def no_http(send: Send) -> None:
    send(b"nonsense\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "tokens", "wrong"),
    [
        (streams, 5, ""),
        (at_once, 1, ""),
        (thinks, 3, ""),
        (silent, 0, "no text was generated"),
        (broken, 0, "HTTP 503: full"),
        (no_http, 0, "the answer is no HTTP"),
    ],
)
def test_every_request_is_measured(answer: Callable[[Send], None], tokens: int, wrong: str) -> None:
    with engine(answer) as url:
        found = load(url, 3)
    assert [one.tokens for one in found] == [tokens] * 3
    for one in found:
        assert one.wrong.startswith(wrong)
        assert bool(one.wrong) == bool(wrong)
        assert (one.ttft > 0) == (not wrong)


@pytest.mark.parametrize(
    ("times", "counted", "expected"),
    [
        ([1.5, 1.7, 1.9], None, Sample(ttft=0.5, tpot=0.2, tokens=3)),
        ([1.5, 1.7, 1.9], 5, Sample(ttft=0.5, tpot=0.1, tokens=5)),
        ([1.5, 1.7, 1.9], "many", Sample(ttft=0.5, tpot=0.2, tokens=3)),
        ([1.5, 2.2], 10**9, Sample(ttft=0.5, tpot=0.1, tokens=8)),
        ([1.5], 4, Sample(ttft=0.5, tokens=4)),
        ([1.5, 1.7], 1, Sample(ttft=0.5, tokens=1)),
        ([1.5], 0, Sample(wrong="no text was generated")),
        ([], 3, Sample(wrong="no text was generated")),
    ],
)
def test_a_request_is_the_times_of_its_pieces_and_tokens_that_it_can_have(
    times: list[float], counted: object, expected: Sample
) -> None:
    found = sample_of(1.0, times, counted, 8)
    assert found.model_copy(update={"ttft": expected.ttft, "tpot": expected.tpot}) == expected
    assert found.ttft == pytest.approx(expected.ttft)
    assert found.tpot == (None if expected.tpot is None else pytest.approx(expected.tpot))


def test_only_so_many_requests_are_under_way_at_the_same_time() -> None:
    lock, together = threading.Lock(), threading.Barrier(3, timeout=PATIENCE_SECONDS)
    under_way, most = 0, 0

    def answer(send: Send) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        together.wait()
        with lock:
            under_way -= 1
        at_once(send)

    with engine(answer) as url:
        found = load(url, 9, concurrency=3)
    assert (most, {one.wrong for one in found}) == (3, {""})


def drips(send: Send) -> None:
    """Sends one header after the other, for ever."""
    send(b"HTTP/1.1 200 OK\r\n")
    while True:
        send(b"x: y\r\n")
        time.sleep(0.01)


def streams_on(send: Send) -> None:
    send(HEAD)
    while True:
        send(chat("ok"))
        time.sleep(0.01)


@pytest.mark.parametrize("answer", [drips, streams_on])
def test_whatever_an_engine_sends_the_load_ends_in_time(answer: Callable[[Send], None]) -> None:
    with engine(answer) as url:
        found = load(url, 2, concurrency=1, seconds=0.5)
    late, unsent = "no whole answer before the deadline", "not sent before the deadline"
    assert [one.wrong for one in found] == [late, unsent]


def test_a_cancelled_load_ends_at_once() -> None:
    begun = threading.Event()

    def answer(_send: Send) -> None:
        begun.set()
        threading.Event().wait(PATIENCE_SECONDS)

    async def cancelled(url: str) -> None:
        sending = asyncio.create_task(send_load([Question(url, "POST", {})], 1, 600))
        await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    with engine(answer) as url:
        asyncio.run(asyncio.wait_for(cancelled(url), PATIENCE_SECONDS))
