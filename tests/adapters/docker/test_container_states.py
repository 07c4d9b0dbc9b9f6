"""Containers as daemons show them, and daemons that do not answer as one should."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.docker import connection, container_states
from moorage.adapters.docker.container_states import list_containers, observe_containers
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_LEDGER, LABEL_RELEASE
from tests.builders import LEDGER, a_workload
from tests.hostile_engine import HostileEngine
from tests.waiting import PATIENCE_SECONDS

RUNS: dict[str, Any] = {"Status": "running", "ExitCode": 0}


class Daemon(BaseHTTPRequestHandler):
    """Answers GET requests with what is kept by path; anything else is not there."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, tuple[int, bytes]] = {}

    def do_GET(self) -> None:
        status, body = self.answers.get(self.path.partition("?since")[0], (404, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class SocketServer(HTTPServer):
    """The same on a Unix socket."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> Any:
        return self.socket.accept()[0], ("", 0)


@pytest.fixture(params=["tcp", "unix"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "docker.sock")
    over_tcp = request.param == "tcp"
    server = HTTPServer(("127.0.0.1", 0), Daemon) if over_tcp else SocketServer(path, Daemon)  # type: ignore[arg-type]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"tcp://127.0.0.1:{server.server_port}" if over_tcp else f"unix://{path}"
    server.shutdown()
    server.server_close()


def answers(monkeypatch: pytest.MonkeyPatch, **contents: object) -> None:
    """What the daemon says of containers by name; a tuple is a status and a text."""
    listed = {"/containers/json?all=1": contents.pop("listed", [])}
    listed["/events"] = contents.pop("events", (404, b"{}"))
    named = {f"/containers/{name}/json": content for name, content in contents.items()}
    written = {
        path: one if isinstance(one, tuple) else (200, json.dumps(one).encode())
        for path, one in (listed | named).items()
    }
    monkeypatch.setattr(Daemon, "answers", written)


def container(state: dict[str, Any], restarts: int = 0, release: str = "tiny.v1") -> dict[str, Any]:
    config = {"Labels": {LABEL_LEDGER: LEDGER, LABEL_RELEASE: release}}
    return {"Id": "1", "State": state, "RestartCount": restarts, "Config": config}


CASES: dict[str, tuple[object, tuple[bool, int | None, str]]] = {
    "runs": (container(RUNS), (True, None, "the container is running")),
    "restarted": (
        container(RUNS, restarts=2),
        (True, None, "the container is running: Docker restarted it 2 times"),
    ),
    "restarting": (
        container({"Status": "restarting", "ExitCode": 3}),
        (True, 3, "the container is restarting"),
    ),
    "ended, and Podman still cleans up after it": (
        container({"Status": "stopped", "ExitCode": 1}),
        (False, 1, "the container exited"),
    ),
    "exited": (
        container({"Status": "exited", "ExitCode": 1, "Error": "no such file"}),
        (False, 1, "the container exited: no such file"),
    ),
    "out of memory": (
        container({"Status": "exited", "ExitCode": 137, "OOMKilled": True}),
        (False, 137, "the container exited: it ran out of memory"),
    ),
    "another's": (
        container(RUNS, release="other.v1"),
        (False, None, "the container is gone"),
    ),
    "gone": ((404, b"{}"), (False, None, "the container is gone")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_state_of_a_container_is_told(
    monkeypatch: pytest.MonkeyPatch, address: str, case: str
) -> None:
    answer, expected = CASES[case]
    answers(monkeypatch, a=answer, b=container(RUNS))
    one, other = observe_containers(address, [a_workload("a"), a_workload("b")])
    assert (one.running, one.exit_code, one.detail) == expected
    assert other.running


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["start", "die", "oom"], True),
        (["start", "die"], True),
        (["start", "kill", "die"], False),
        (["kill", "die", "oom"], True),
        (["start"], False),
        ((500, b"events are not kept"), False),
        ((200, b"{"), False),
        ((200, b"[]"), False),
    ],
)
def test_a_sigkill_that_nobody_asked_the_daemon_for_is_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch, address: str, events: Any, expected: bool
) -> None:
    """Docker sets no `OOMKilled` when the end of a container overtakes the news of its memory."""
    if isinstance(events, list):
        events = (200, b"".join(b'{"Action": "%s"}\n' % one.encode() for one in events))
    ended: dict[str, Any] = {"Status": "exited", "ExitCode": 137, "OOMKilled": False}
    ended |= {"StartedAt": "2026-11-27T07:20:40.2338Z", "FinishedAt": "2026-11-27T07:20:41.27Z"}
    answers(monkeypatch, a=container(ended), events=events)
    [seen] = observe_containers(address, [a_workload("a")])
    assert seen.out_of_memory == expected
    assert ("it ran out of memory" in seen.detail) == expected


def test_all_containers_are_listed(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    listed = [{"Id": "1", "Names": ["/a"]}, {"Id": "2", "Names": ["/b"]}]
    answers(monkeypatch, listed=listed)
    assert list_containers(address) == listed


@pytest.mark.parametrize("answer", [(500, b"it is on fire"), (200, b"{"), (200, b"[" + b" " * 99)])
def test_an_answer_that_makes_no_sense_is_a_daemon_that_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, address: str, answer: tuple[int, bytes]
) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 64)
    answers(monkeypatch, listed=answer)
    with pytest.raises(Failure) as caught:
        list_containers(address)
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE
    assert address in caught.value.detail


def test_a_daemon_that_is_away_or_says_nothing_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(container_states, "LIST_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for address in (f"tcp://127.0.0.1:{silent.getsockname()[1]}", f"unix://{tmp_path}/none"):
            with pytest.raises(Failure) as caught:
                list_containers(address)
            assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE


@pytest.mark.parametrize("misbehaviour", ["drips its headers", "drips its body"])
def test_a_daemon_that_drips_its_answer_is_given_up_in_time(
    misbehaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_states, "LIST_SECONDS", 1)
    with HostileEngine(misbehaviour) as daemon:
        began = time.monotonic()
        with pytest.raises(Failure, match="no answer in time") as failed:
            list_containers(daemon.url.replace("http", "tcp"))
    assert failed.value.cause == Cause.RUNTIME_UNAVAILABLE
    assert time.monotonic() - began < PATIENCE_SECONDS
