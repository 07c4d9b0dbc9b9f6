"""A listener greets who reaches it, and ends by itself."""

from __future__ import annotations

import json
import socket
import subprocess
import threading

import pytest

from moorage.adapters.hosts.fleet_check import PROGRAM, listen_locally
from moorage.adapters.hosts.reachability import greet, listen, reach
from tests.prefect_server import free_port

HERE = "127.0.0.1"


def test_who_listens_is_reached_and_then_no_more() -> None:
    port = free_port()
    with listen_locally(HERE, port):
        assert reach(HERE, port) == ""
        assert reach(HERE, port) == ""
    assert "refused" in reach(HERE, port, patience=0)


def test_somebody_else_on_the_port_is_told_apart() -> None:
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: server.accept()[0].sendall(b"SSH-2.0"), daemon=True).start()
        assert "something else answers" in reach(HERE, port, patience=0)


def test_a_listener_ends_when_its_time_is_up() -> None:
    greet(listen(HERE, port := free_port()), seconds=0.1)
    assert "refused" in reach(HERE, port, patience=0)


def test_a_port_that_is_taken_cannot_be_listened_on() -> None:
    with (
        socket.create_server((HERE, 0)) as server,
        pytest.raises(OSError, match="in use"),
        listen_locally(HERE, server.getsockname()[1]),
    ):
        pass


def test_as_a_program_it_needs_the_standard_library_alone() -> None:
    port, closed = free_port(), free_port()
    with subprocess.Popen([*PROGRAM, "listen", str(port)]) as listener:
        pairs = json.dumps([(HERE, port), (HERE, closed, 0.0)])
        finished = subprocess.run(
            [*PROGRAM, "reach", pairs], capture_output=True, check=True, text=True
        )
        listener.kill()
    reached, refused = json.loads(finished.stdout)
    assert reached == ""
    assert "refused" in refused


def test_an_address_of_version_6_is_listened_on_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(socket, "create_server", lambda place, family: made.append((place, family)))
    listen("::1", 40000)
    assert made == [(("::1", 40000), socket.AF_INET6)]
