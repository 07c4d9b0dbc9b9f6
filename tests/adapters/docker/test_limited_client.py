"""A daemon that misbehaves is refused in time, and takes little memory."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from docker.errors import APIError

from moorage.adapters.docker import limited_client
from moorage.adapters.docker.limited_client import LimitedClient
from moorage.adapters.docker.sdk import DAEMON_ERRORS
from moorage.adapters.hosts.observation import last_bytes
from moorage.common.units import MIB
from tests.hostile_engine import CHUNKED, MISBEHAVIOURS, OK, HostileEngine, _chunk

HANG_SECONDS = 10
LONG_EVENT = b'{"id": "%s"}\n' % (b"x" * 60_000)


PIECE = bytes(1 << 20)


@contextlib.contextmanager
def busy_daemon(pause: float) -> Iterator[str]:
    """A daemon whose disk is slow: it takes what is sent only after a while."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            received = connection.recv(65_536)
            time.sleep(pause)
            while not received.endswith(b"0\r\n\r\n"):
                received = received[-8:] + connection.recv(1 << 20)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_a_slow_disk_there_does_not_cut_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits for each piece that is sent as long as for a connection."""
    monkeypatch.setattr(limited_client, "CONNECT_SECONDS", 0.2)
    with busy_daemon(pause=1.0) as address:
        client = LimitedClient(base_url=address, version="1.41", timeout=20)
        assert client.api.put_archive("id", "/store", (PIECE for _ in range(64)))
        client.close()


@contextlib.contextmanager
def hostile(misbehaviour: str) -> Iterator[Any]:
    """The API of a daemon that misbehaves."""
    tracemalloc.start()
    with HostileEngine(misbehaviour) as daemon:
        base = daemon.url.replace("http:", "tcp:")
        client = LimitedClient(base_url=base, version="1.41", timeout=0.3)
        began = time.monotonic()
        with contextlib.closing(client):
            yield client.api
        gc.collect()  # the library's streams refer to themselves, and keep connections open
        assert time.monotonic() - began < HANG_SECONDS
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    "misbehaviour",
    [
        *("drips its body", "drips its headers", "drips its status", "drips its refusal"),
        *("drips chunks", "says nothing", "says continue for ever", "sends for ever"),
        *("sends chunks for ever", "promises 10 GB", "sends trailers for ever", "sends a bomb"),
        *("redirects", "extends each chunk"),
    ],
)
def test_an_answer_has_one_deadline_and_one_limit(misbehaviour: str) -> None:
    with hostile(misbehaviour) as api, pytest.raises(DAEMON_ERRORS):
        api.info()


@pytest.mark.parametrize("body", [b"{}", b"[]", b'"no"', b"no"])
def test_a_refusal_without_a_message_is_an_error_of_the_daemon(
    monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    head = b"HTTP/1.1 500 Error\r\nContent-Type: application/json\r\n"
    answer = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    monkeypatch.setitem(MISBEHAVIOURS, "refuses", lambda: iter([answer]))
    with hostile("refuses") as api, pytest.raises(APIError):
        api.info()


@pytest.mark.parametrize(
    "misbehaviour",
    ["drips its body", "drips chunks", "sends chunks for ever", "says nothing more"],
)
def test_an_archive_has_them_too(monkeypatch: pytest.MonkeyPatch, misbehaviour: str) -> None:
    monkeypatch.setitem(MISBEHAVIOURS, "says nothing more", lambda: chain([CHUNKED], repeat(b"")))
    with hostile(misbehaviour) as api:
        archive, _ = api.get_archive("id", "/etc/passwd")
        with pytest.raises(DAEMON_ERRORS):
            last_bytes(archive)


def test_the_connection_of_an_archive_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MISBEHAVIOURS, "archives", lambda: chunked(b"archive"))
    with hostile("archives") as api:
        archive, _ = api.get_archive("id", "/etc/passwd")
        assert last_bytes(archive) == b"archive"
        (pool,) = api.adapters["http://"].poolmanager.pools._container.values()
        assert pool.pool.get_nowait() is not None


def pull(api: Any) -> object:
    return list(api.pull("engine:v1", stream=True, decode=True, auth_config={"username": "a"}))


def chunked(*pieces: bytes) -> Iterator[bytes]:
    return chain([CHUNKED], map(_chunk, pieces), [b"0\r\n\r\n"])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda: chain([CHUNKED], repeat(_chunk(b'{"id": "' + b"x" * MIB))),
            "a line over 64.0 KiB",
        ),
        (lambda: chain([CHUNKED + b"1;"], repeat(bytes(MIB))), "chunk size"),
        (lambda: chain([OK + b"\r\n"], repeat(LONG_EVENT)), "too long"),
        (lambda: chunked(b"[" * 10_000 + b"\n"), "nested more than 64 deep"),
        (lambda: chunked(b"[]\n"), "no JSON object"),
    ],
)
def test_the_events_of_a_pull_are_short(
    monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    monkeypatch.setitem(MISBEHAVIOURS, "pulls", answer)
    with hostile("pulls") as api, pytest.raises(DAEMON_ERRORS, match=words):
        pull(api)


def test_events_arrive_whole_however_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"status": "Downloading", "id": str(number)} for number in range(50)]
    lines = b"\r\n".join(json.dumps(one).encode() for one in events)
    pieces = [lines[at : at + 7] for at in range(0, len(lines), 7)]
    monkeypatch.setitem(MISBEHAVIOURS, "pulls", lambda: chunked(*pieces))
    with hostile("pulls") as api:
        assert pull(api) == events


def test_a_frame_of_a_log_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = chain([b"\1\0\0\0\0\0\0\3one\2\0\0\0\xff\xff\xff\xff"], repeat(b"x" * MIB, 120))
    answer = lambda: chunked(*frames)  # noqa: E731
    monkeypatch.setitem(MISBEHAVIOURS, "logs", answer)
    with hostile("logs") as api:
        monkeypatch.setattr(api, "_check_is_tty", lambda _: False)
        stream = api.logs("id", stream=True, follow=False)
        assert next(stream) == b"one"
        assert last_bytes(stream) == b"x" * 4 * MIB
        del stream
