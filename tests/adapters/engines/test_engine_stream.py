"""Engines that stream, some of them faulty or hostile."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from moorage.adapters.engines.engine_http import Late, NoAnswer, Question, Unreachable, Unusable
from moorage.adapters.engines.engine_stream import stream_text
from tests.prefect_server import free_port

Send = Callable[[bytes], object]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def event(content: Any) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


def chat(text: str | None) -> bytes:
    return event({"choices": [{"delta": {"content": text}}]})


def test_each_piece_comes_as_soon_as_it_is_there() -> None:
    second = threading.Event()

    def answer(send: Send) -> None:
        send(HEAD + chat(None) + chat("Hello")[:9])
        send(chat("Hello")[9:] + b": a comment\n\n")
        assert second.wait(30)
        send(event({"choices": [{"text": ", you"}]}) + event({"usage": {}}) + b"data: [DONE]\n\n")

    with engine(answer) as url:
        pieces = stream_text(Question(url, "POST", {"stream": True}), 30)
        assert next(pieces) == "Hello"
        second.set()
        assert list(pieces) == [", you"]


def test_an_engine_that_does_not_stream_answers_with_one_piece() -> None:
    whole = {"choices": [{"message": {"content": "Hello"}}], "usage": {"completion_tokens": 1}}
    head = HEAD.replace(b"text/event-stream", b"application/json; charset=utf-8")
    usage: dict[str, Any] = {}
    with engine(lambda send: send(head + json.dumps(whole, indent=1).encode())) as url:
        assert list(stream_text(Question(url, "POST", {}), 30, usage=usage)) == ["Hello"]
    assert usage == {"completion_tokens": 1}


@pytest.mark.parametrize(
    ("sent", "failure", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\nno such model", Unusable, "HTTP 404: no such model"),
        (HEAD + b"data: {broken\n\n", Unusable, "an event"),
        (HEAD + event({"error": {"message": "out of slots"}}), Unusable, "out of slots"),
        (HEAD + b"data: " + b"x" * 5000, Unusable, "larger than"),
        (b"nonsense", NoAnswer, "."),
    ],
)
def test_what_is_no_stream_is_an_error(sent: bytes, failure: type[NoAnswer], why: str) -> None:
    with engine(lambda send: send(sent)) as url, pytest.raises(failure, match=why):
        list(stream_text(Question(url, "POST", {}), 30, most=4096))


def test_an_engine_that_says_nothing_is_not_waited_for_longer_than_the_deadline() -> None:
    ended = threading.Event()
    with engine(lambda send: send(HEAD) and ended.wait(60)) as url:
        with pytest.raises(Late):
            list(stream_text(Question(url, "POST", {}), 0.3))
        ended.set()


@pytest.mark.parametrize("start", [HEAD[:-2], HEAD])
def test_an_engine_that_drips_gets_no_more_time(start: bytes) -> None:
    """Neither while it sends headers nor later: each byte comes long before a pause has ended."""
    ended = threading.Event()

    def drip(send: Send) -> None:
        with suppress(OSError):
            send(start)
            while not ended.wait(0.02):
                send(b":")

    with engine(drip) as url:
        with pytest.raises(Late, match="no whole answer in time"):
            list(stream_text(Question(url, "POST", {}), 0.3, pause=5))
        ended.set()


def test_nobody_there_is_told() -> None:
    with pytest.raises(Unreachable):
        list(stream_text(Question(f"http://127.0.0.1:{free_port()}", "POST", {}), 5))


@contextmanager
def engine(answer: Callable[[Send], object]) -> Iterator[str]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)

            def send(content: bytes) -> bool:
                self.request.sendall(content)
                return True

            answer(send)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
