"""A process that has imported all modules and forks commands and Prefect servers.

Imports take longer than most commands, and seven eighths of a server's start. A fork is a process
like any other: a test can kill it at any point.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from moorage.adapters.prefect.home_server import CLIENT_DEFAULTS
from moorage.cli import forked_command

REPOSITORY = Path(__file__).parents[1]
MESSAGE_BYTES = 1 << 20
PREFECTS = "PREFECT_"
"""Prefix of Prefect's variables: the imports read those of the first command, and a command with
other values reads them again."""

EARLY = tuple(begin for begin in forked_command.EARLY if begin != PREFECTS)
"""Prefixes of variables that the imports read; a command reads all others itself."""

COMMAND, SERVICE = "moorage", "moorage, until it is stopped"
PREFECT, PREFECT_SERVER = "prefect", "prefect server"
"""The programs that can be forked; a service and a server lead their own sessions."""

NOTHING = ""
KILLS, FAILS, STOPS = "kills itself", "fails", "gets SIGTERM"
"""Events at a point of a command."""


class ForkServer:
    """Forks programs, any number of them at a time.

    Args:
        environment: Variables for the imports.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked_programs", str(theirs.fileno())],
                cwd=REPOSITORY,
                # `tests` is found in the current folder, even if this process has signed in.
                env={**CLIENT_DEFAULTS, **environment, "PYTHONSAFEPATH": ""},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Processes in the background of a shell inherit that they ignore SIGINT.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def run(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        seconds: float,
        point: str = NOTHING,
        victim: int = 0,
        how: str = KILLS,
        signals: Mapping[int, float] = {},
        folder: Path = REPOSITORY,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with an optional event at a point of it.

        The event is the kill of a victim where one is given, else that of `how`.

        Args:
            arguments: Arguments of the command.
            environment: All its variables.
            seconds: Timeout, after which it is killed.
            point: One of `EVERY_POINT`; empty = no event.
            victim: Process that is killed at the point with all of its children; 0 = none.
            how: The event at the point without a victim.
            signals: Signals for the command, with the seconds after its start.
            folder: Its working directory.

        Raises:
            subprocess.TimeoutExpired: It took longer than `seconds`.
        """
        command = self.begin(
            arguments,
            environment,
            point=point,
            victim=victim,
            how=how,
            signals=signals,
            folder=folder,
        )
        try:
            command.wait(seconds)
        except subprocess.TimeoutExpired:
            command.kill()
            raise
        return subprocess.CompletedProcess(arguments, command.wait(), *command.communicate())

    def begin(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        *,
        point: str = NOTHING,
        victim: int = 0,
        how: str = KILLS,
        signals: Mapping[int, float] = {},
        program: str = COMMAND,
        folder: Path = REPOSITORY,
        log: Path | None = None,
        streams: Sequence[int] = (),
    ) -> ForkedProcess:
        """Start a program and return at once; for the arguments see `run`.

        Args:
            program: The program to fork.
            log: File for all of its output.
            streams: The caller's files for standard output, error and input.
        """
        order = {
            "program": program,
            "folder": str(folder),
            "arguments": arguments,
            "environment": dict(environment),
            "point": point,
            "victim": victim,
            "how": how,
            "signals": list(signals.items()),
        }
        out, err = _files(log)
        answers, theirs = socket.socketpair()
        with theirs:
            files = [theirs.fileno(), *(streams or (out.fileno(), err.fileno()))]
            socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        return ForkedProcess(arguments, answers, out, err)

    def close(self) -> None:
        """Stop the server; its programs must have ended."""
        self._orders.close()
        self._process.wait()


class ForkedProcess:
    """A running program, with the methods of `subprocess.Popen`."""

    def __init__(
        self, arguments: list[str], answers: socket.socket, out: IO[str], err: IO[str]
    ) -> None:
        self.args = arguments
        self._answers, self._out, self._err = answers, out, err
        # Unbuffered, so that `select` sees all unread lines.
        self._lines = answers.makefile("rb", buffering=0)
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal that ended it; None = it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status; raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._lines.readline())
            self._answers.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end, and return its standard output and error."""
        self.wait(timeout)
        for file in (self._out, self._err):
            file.seek(0)
        return self._out.read(), self._err.read()

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program."""
        self.send_signal(signal.SIGKILL)


def _files(log: Path | None) -> tuple[IO[str], IO[str]]:
    """Files for a program's standard output and error."""
    if log:
        return log.open("a+"), log.open("a+")
    return tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")


_SERVERS: dict[frozenset[tuple[str, str]], ForkServer] = {}
_TURN = threading.Lock()


def server_for(environment: Mapping[str, str]) -> ForkServer:
    """The fork server that imported modules with these variables; started if there is none."""
    # Empty variables count as unset.
    given = {name: value for name, value in environment.items() if value}
    counting = {name: value for name, value in given.items() if name.startswith(EARLY)}
    prefect = {name: value for name, value in environment.items() if name.startswith(PREFECTS)}
    own = {name: value for name, value in os.environ.items() if not name.startswith(EARLY)}
    key = frozenset(counting.items())
    with _TURN:
        if key not in _SERVERS:
            _SERVERS[key] = ForkServer(own | prefect | counting)
        return _SERVERS[key]


@atexit.register
def _close_all() -> None:
    while _SERVERS:
        _SERVERS.popitem()[1].close()
