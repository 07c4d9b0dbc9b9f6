"""What a load measures of engines that stream, that do not, and that fail."""

from __future__ import annotations

import threading
import time

import pytest

from moorage.adapters.engines.engine_http import Question
from moorage.adapters.engines.load_client import LoadClient
from tests.adapters.engines.test_engine_stream import HEAD, Send, chat, engine, event

PAUSE_SECONDS = 0.05


def paced(send: Send) -> None:
    send(HEAD)
    for _ in range(3):
        send(chat("ok"))
        time.sleep(PAUSE_SECONDS)


def counted(send: Send) -> None:
    paced(send)
    send(event({"choices": [], "usage": {"completion_tokens": 5}}))


def at_once(send: Send) -> None:
    send(HEAD + chat("ok"))


def silent(send: Send) -> None:
    send(HEAD + event({"choices": [], "usage": {"completion_tokens": 0}}))


def broken(send: Send) -> None:
    send(b"HTTP/1.1 503 Service Unavailable\r\n\r\nfull")


@pytest.mark.parametrize(
    ("answer", "tokens", "tpot", "wrong"),
    [
        (paced, 3, PAUSE_SECONDS, ""),
        (counted, 5, PAUSE_SECONDS / 2, ""),
        (at_once, 1, None, ""),
        (silent, 0, None, "no text was generated"),
        (broken, 0, None, "HTTP 503: full"),
    ],
)
def test_a_request_is_measured_by_its_pieces(
    answer: object, tokens: int, tpot: float | None, wrong: str
) -> None:
    with engine(answer) as url:  # type: ignore[arg-type]
        found = LoadClient(2, time.monotonic() + 30).run([Question(url, "POST", {})] * 3)
    assert [(one.tokens, one.wrong) for one in found] == [(tokens, wrong)] * 3
    for one in found:
        assert (one.tpot is None) == (tpot is None)
        assert tpot is None or (one.tpot or 0) >= tpot * 0.9


def test_only_so_many_requests_are_under_way_at_the_same_time() -> None:
    lock, under_way, most = threading.Lock(), 0, 0

    def answer(send: Send) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.02)
        with lock:
            under_way -= 1
        at_once(send)

    with engine(answer) as url:
        found = LoadClient(3, time.monotonic() + 30).run([Question(url, "POST", {})] * 9)
    assert (most, {one.wrong for one in found}) == (3, {""})


def test_what_is_stopped_ends_with_the_next_piece_and_sends_no_more() -> None:
    begun = threading.Event()

    def endless(send: Send) -> None:
        send(HEAD)
        while True:
            send(chat("ok"))
            begun.set()
            time.sleep(0.01)

    with engine(endless) as url:
        client = LoadClient(1, time.monotonic() + 60)

        def stop() -> None:
            begun.wait(30)
            client.stop()

        threading.Thread(target=stop, daemon=True).start()
        found = client.run([Question(url, "POST", {})] * 2)
    assert [one.wrong for one in found] == ["stopped", "not sent before the deadline"]
