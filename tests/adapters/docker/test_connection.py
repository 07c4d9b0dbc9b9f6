"""Which daemon is reached, and why it is not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import IncompleteRead
from pathlib import Path

import pytest

from moorage.adapters.docker import connection as module
from moorage.adapters.docker.connection import as_docker_would, connection
from moorage.adapters.docker.container_states import list_containers
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.survey import docker_version
from moorage.common.failures import Cause, Failure
from tests.scripted_daemon import ScriptedDaemon, serving

QUESTIONS: dict[str, Callable[[str], object]] = {
    "names": lambda address: DockerImages(address).names(),
    "sizes": lambda address: DockerImages(address).sizes(),
    "the disk": lambda address: DockerImages(address).disk_free(),
    "containers": list_containers,
}


def test_missing_certificates_are_named(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        list_containers(f"tcp://127.0.0.1:2376?certificates={tmp_path}")
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED
    assert str(tmp_path) in caught.value.detail
    assert "ca.pem" in caught.value.suggestion


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("unix:///var/run/docker.sock", "")),
        ({"DOCKER_TLS_VERIFY": "1"}, ("unix:///var/run/docker.sock", "")),
        ({"DOCKER_HOST": "tcp://gpu-1:2375"}, ("tcp://gpu-1:2375", "")),
        (
            {"DOCKER_HOST": "tcp://gpu-1:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c"},
            ("tcp://gpu-1:2376", "/c"),
        ),
    ],
)
def test_this_machine_s_daemon_is_the_one_that_docker_would_ask(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[str, str]
) -> None:
    for name in ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.setenv(name, variables.get(name, ""))
    found = as_docker_would()
    assert (found.address, found.certificates) == expected


@pytest.mark.parametrize("answer", [(404, b"404 page not found"), (200, b"null"), (200, b"7")])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_no_docker_daemon_is_a_failure(question: str, answer: tuple[int, bytes]) -> None:
    daemon = ScriptedDaemon()
    daemon.answers = dict.fromkeys(("GET json", "GET version", "GET info", "GET df"), answer)
    with serving(daemon) as access, pytest.raises(Failure) as caught:
        QUESTIONS[question](access.url)
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE


@pytest.mark.parametrize("answer", [(404, b""), (200, {}), (200, [])])
def test_a_version_that_is_not_told_is_a_reason(answer: tuple[int, object]) -> None:
    daemon = ScriptedDaemon()
    daemon.answers["GET version"] = answer
    with serving(daemon) as access:
        version, reason = docker_version(access.url)
    assert (version, bool(reason)) == ("", True)


def test_sizes_are_requested_in_a_version_that_the_daemon_speaks() -> None:
    daemon = ScriptedDaemon()
    daemon.answers["GET version"] = (200, {"ApiVersion": "1.60", "MinAPIVersion": "1.50"})
    daemon.answers["GET df"] = (200, {"Images": []})
    with serving(daemon) as access:
        assert DockerImages(access.url).sizes() == ()
    assert daemon.paths[-1].startswith("/v1.50/")


@contextmanager
def raw_daemon(*answers: bytes, pause: float = 0) -> Iterator[str]:
    """A daemon that gives one answer on each connection, and closes it."""

    def serve() -> None:
        for answer in answers:
            connected, _ = server.accept()
            with connected:
                connected.recv(65_536)
                time.sleep(pause)
                connected.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"
CLOSES = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


def test_an_answer_that_is_cut_off_is_none_and_the_next_request_goes_to_a_new_connection() -> None:
    with raw_daemon(CUT, WHOLE) as address, connection(address, 10) as daemon:
        with pytest.raises(IncompleteRead):
            daemon.get("/info")
        assert daemon.get("/info") == {}


def test_a_new_connection_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """To connect takes at most 5 s; an answer may take longer."""
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)
    with raw_daemon(CLOSES, CLOSES, pause=0.5) as address, connection(address, 10) as daemon:
        assert [daemon.get("/info"), daemon.get("/info")] == [{}, {}]


def test_who_does_not_let_one_connect_in_time_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)  # the queue of the server is full
        with pytest.raises(Failure, match=r"connection timed out after 0\.1 s"):
            list_containers(f"tcp://127.0.0.1:{address[1]}")
        for one in waiting:
            one.close()


def test_a_daemon_that_was_away_is_asked_again(tmp_path: Path) -> None:
    place = tmp_path / "docker.sock"
    with connection(f"unix://{place}", 10) as daemon:
        with pytest.raises(FileNotFoundError):
            daemon.get("/info")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place))
            server.listen()

            def serve() -> None:
                connected, _ = server.accept()
                connected.recv(65_536)
                connected.sendall(WHOLE)

            threading.Thread(target=serve, daemon=True).start()
            assert daemon.get("/info") == {}
