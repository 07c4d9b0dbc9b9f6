"""How long a daemon is waited for, while a connection is made and while something is sent."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from docker.errors import TLSParameterError

from moorage.adapters.docker import client as docker_client
from moorage.adapters.docker.client import follow
from moorage.inventory.access import Access

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
    monkeypatch.setattr(docker_client, "CONNECT_SECONDS", 0.2)
    with busy_daemon(pause=1.0) as address:
        client = docker_client._client({"base_url": address}, "1.41", 20)
        assert client.api.put_archive("id", "/store", (PIECE for _ in range(64)))
        client.close()


@pytest.mark.parametrize("host", ["", "unix:///run/podman/podman.sock"])
def test_certificates_that_are_named_for_another_daemon_do_not_concern_a_socket(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Shells keep such variables long after the machine that they were set for."""
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    arguments = docker_client._arguments(Access(address="local"))
    assert arguments == {"base_url": host or "unix:///var/run/docker.sock"}


def test_a_daemon_of_the_environment_is_asked_with_its_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2376")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    with pytest.raises(TLSParameterError):
        docker_client._arguments(Access(address="local"))


def test_items_come_in_order_and_end() -> None:
    assert list(follow(lambda: iter([1, 2, 3]), lambda: None)) == [1, 2, 3]


def test_what_the_stream_raises_is_raised() -> None:
    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("cut")

    found = follow(stream, lambda: None)
    assert next(found) == 1
    with pytest.raises(ValueError, match="cut"):
        next(found)


def test_silence_is_borne_as_long_as_the_other_side_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(docker_client, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(docker_client, "MISSES", 2)
    checks, go_on = [], threading.Event()

    def stream() -> Iterator[int]:
        assert go_on.wait(60)
        yield 1

    def ask() -> None:
        checks.append(1)
        if len(checks) == 2:
            raise OSError("busy")
        if len(checks) == 5:
            go_on.set()

    assert list(follow(stream, ask)) == [1]
    assert len(checks) >= 5


def test_a_side_that_is_gone_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_client, "SILENCE_SECONDS", 0.01)
    never, checks = threading.Event(), []

    def stream() -> Iterator[int]:
        never.wait(30)
        yield 1

    def ask() -> None:
        checks.append(1)
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        list(follow(stream, ask))
    assert len(checks) == 3
    never.set()
