"""What a daemon may answer, byte by byte."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from moorage.adapters.docker import daemon_answer
from moorage.adapters.docker.daemon_answer import AnswerReader

MOST = 64
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, AnswerReader]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    with ours, theirs:
        yield theirs, AnswerReader(ours, 5, MOST)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, "OK", b"{}")),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", (404, "Not Found", b"")),
        (CHUNKED + b"1\r\n{\r\n1;name=x\r\n}\r\n0\r\n\r\n", (200, "OK", b"{}")),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", (200, "OK", b"0123456789")),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (200, "", b"")),
    ],
)
def test_answers_follow_each_other_on_a_connection(
    pair: tuple[socket.socket, AnswerReader], sent: bytes, expected: tuple[int, str, bytes]
) -> None:
    theirs, reader = pair
    theirs.sendall(2 * sent)
    assert [reader.read(), reader.read()] == [expected, expected]


def test_a_body_without_a_length_ends_with_the_connection(
    pair: tuple[socket.socket, AnswerReader],
) -> None:
    theirs, reader = pair
    theirs.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nno HTTPS")
    theirs.close()
    assert reader.read() == (400, "Bad Request", b"no HTTPS")


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "does not answer"),
        (b"\x15\x03\x01\x00\x02\x02", "answer ends in"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (b"HTTP/1.1 soon\r\n\r\n", "invalid literal"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", "cut short"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n" + b" " * 65, "more than 64 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "more than 64 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 65, "more than 64 bytes"),
        (CHUNKED + b"2\r\n{", "cut short"),
        (CHUNKED + b"2\r\n{}\r\n", "answer"),
        (CHUNKED + b"-2\r\n{}\r\n", "more than 64 bytes"),
        (CHUNKED + 2 * (b"40\r\n" + b" " * 64 + b"\r\n"), "more than 64 bytes"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * daemon_answer.MOST_HEADERS, "100 headers"),
    ],
)
def test_what_is_no_whole_answer_is_refused(
    pair: tuple[socket.socket, AnswerReader], sent: bytes, reason: str
) -> None:
    theirs, reader = pair
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(ValueError, match=reason):
        reader.read()


def test_an_endless_line_is_refused(
    pair: tuple[socket.socket, AnswerReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_answer, "MOST_LINE", 8)
    theirs, reader = pair
    theirs.sendall(b"HTTP/1.1 200 OK")
    with pytest.raises(ValueError, match="answer ends in"):
        reader.read()
