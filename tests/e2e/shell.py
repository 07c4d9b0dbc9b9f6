"""A shell for tests, in which `moorage` is a fork of the process that has imported everything."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fork_server import MESSAGE_BYTES, server_for
from tests.waiting import PATIENCE_SECONDS

MOORAGE = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    order = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(server, [order.encode()], [1, 2, 0])
    sys.exit(int(server.recv(100)))
"""
"""The program `moorage` of the shell; `python -m moorage.cli` takes twenty times as long."""

MARK = "-- end of a block --"


def outputs(blocks: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What each block prints, on both streams, in one shell; the first command that fails ends it.

    Args:
        folder: Where the shell starts; the program `moorage` is made there.
        environment: All variables of the shell.
    """
    script = "".join(f"{block}\necho '{MARK}'\n" for block in blocks)
    with forked_moorage(folder / "bin", environment) as variables:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    return done.stdout.split(f"{MARK}\n")[:-1]


@contextmanager
def forked_moorage(folder: Path, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Make the program `moorage` in a new folder; the variables of a shell that finds it first.

    It reads and writes the files of whoever calls it, which may be a terminal.
    """
    folder.mkdir()
    program, address = folder / "moorage", folder / "socket"
    program.write_text(MOORAGE.format(python=sys.executable, address=str(address)))
    program.chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{environment['PATH']}"
    with _Commands(str(address), _Command) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {**environment, "PATH": path}
        server.shutdown()


class _Commands(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A thread for each command: a shell may start one while another runs in the background."""

    socket_type = socket.SOCK_SEQPACKET
    daemon_threads = True


class _Command(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        order, streams, _, _ = socket.recv_fds(self.request, MESSAGE_BYTES, 3)
        words, environment, folder = json.loads(order)
        server = server_for(environment)
        command = server.begin(words, environment, folder=Path(folder), streams=streams)
        for file in streams:
            os.close(file)
        self.request.send(str(command.wait(PATIENCE_SECONDS)).encode())
