"""Answers through the Docker of a host that somebody took over: they are limited."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from moorage.adapters.gateway.host_channel import MOST_BYTES, Link
from moorage.common.strict_json import JsonError


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket]]:
    near, far = socket.socketpair()
    with closing(near), closing(far):
        yield Link(near), far


def frame(content: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


def test_an_answer_comes_in_pieces_and_the_log_is_no_part_of_it(
    ends: tuple[Link, socket.socket],
) -> None:
    link, far = ends
    far.sendall(frame(b'{"size": 4, "sta') + frame(b"a warning", 2) + frame(b'tus": 200}\nab'))
    far.sendall(frame(b"cd") + frame(b'{"size": 0}\n'))
    assert link.ask(b"one") == ({"size": 4, "status": 200}, b"abcd")
    assert link.ask(b"two") == ({"size": 0}, b"")
    assert far.recv(9) == b"onetwo"


@pytest.mark.parametrize(
    "sent",
    [
        frame(b'{"size": -1}\n'),
        frame(f'{{"size": {MOST_BYTES + 1}}}\n'.encode()),
        frame(b'{"size": "4"}\n'),
        frame(b"[]\n"),
        frame(b"x" * 40_000) * 2,
        b"\x01\0\0\0\xff\xff\xff\xff",
    ],
)
def test_what_is_no_answer_is_refused(ends: tuple[Link, socket.socket], sent: bytes) -> None:
    link, far = ends
    far.sendall(sent)
    with pytest.raises(OSError, match="answer"):
        link.ask(b"one")


def test_what_is_no_json_is_refused(ends: tuple[Link, socket.socket]) -> None:
    link, far = ends
    far.sendall(frame(b"[[[\n"))
    with pytest.raises(JsonError):
        link.ask(b"one")


def test_a_program_that_has_ended_says_why(ends: tuple[Link, socket.socket]) -> None:
    link, far = ends
    far.sendall(frame(b"Traceback\nno space left\n", 2))
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError, match="ended: no space left"):
        link.ask(b"one")


def test_an_answer_that_does_not_come_is_given_up(
    ends: tuple[Link, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.host_channel.ANSWER_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        ends[0].ask(b"one")
