"""Who listens on a port is known without a look at every process."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from moorage.adapters.system.listeners import are_only_listeners, tcp_sockets


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A socket of this process that listens."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def test_the_kernels_tables_tell_what_psutil_tells(server: socket.socket) -> None:
    every = psutil.net_connections("tcp")
    seen = {one.laddr.port for one in every if one.laddr and one.status == "LISTEN"}
    found = {one.port for one in tcp_sockets() if one.listens}
    assert server.getsockname()[1] in found & seen


@pytest.mark.parametrize(
    ("pids", "only"),
    [({os.getpid()}, True), ({os.getppid()}, False), ({os.getppid(), os.getpid()}, True)],
)
def test_a_listener_belongs_to_the_process_that_has_its_socket(
    server: socket.socket, pids: set[int], only: bool
) -> None:
    assert are_only_listeners(pids, server.getsockname()[1]) == only


def test_a_socket_of_another_process_at_the_same_port_is_seen(server: socket.socket) -> None:
    port = server.getsockname()[1]
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with subprocess.Popen(["sleep", "60"], pass_fds=[other.fileno()]) as holder:
            other.close()
            assert not are_only_listeners({os.getpid()}, port)
            assert are_only_listeners({os.getpid(), holder.pid}, port)
            holder.kill()


def test_where_nobody_listens_there_is_nobody_else(server: socket.socket) -> None:
    port = server.getsockname()[1]
    server.close()
    assert are_only_listeners({os.getpid()}, port)


def test_a_process_that_has_ended_has_no_sockets(server: socket.socket) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert not are_only_listeners({ended.pid}, server.getsockname()[1])
