"""A process that has imported everything already and forks commands and Prefect servers.

Importing takes longer than most commands, and seven eighths of a server's start. A fork is a
process like any other: it can be killed anywhere.
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
"""How Prefect's variables begin: those of the first command are read while modules are imported,
and a command that has others reads them again."""

EARLY = tuple(begin for begin in forked_command.EARLY if begin != PREFECTS)
"""How variables begin that are read while modules are imported; a command reads all others."""

COMMAND, SERVICE = "moorage", "moorage, until it is stopped"
PREFECT, PREFECT_SERVER = "prefect", "prefect server"
"""The programs that can be forked; a service and a server lead a session of their own."""

NOTHING = ""
KILLS, FAILS, STOPS = "kills itself", "fails", "gets SIGTERM"
"""What happens at a point of a command."""


class ForkServer:
    """Forks programs, as many at a time as are wanted.

    Args:
        environment: Variables that count while modules are imported.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked_programs", str(theirs.fileno())],
                cwd=REPOSITORY,
                env={**CLIENT_DEFAULTS, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # A shell that runs the tests in the background hands down an ignored Ctrl-C.
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
        """Run a command to its end, or to the point at which something happens to it.

        It kills a victim where there is one, else what `how` says happens.

        Args:
            arguments: Of the command.
            environment: All its variables.
            seconds: After these it is killed.
            point: One of `EVERY_POINT`; empty = it comes to its end.
            victim: Process that is killed there with all that it has started; 0 = none.
            how: What happens there without a victim.
            signals: Signals that it gets, each so many seconds after its start.
            folder: Where it runs.

        Raises:
            subprocess.TimeoutExpired: It took longer.
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
        """Start a program, see `run`, in a folder; a log gets all that it writes.

        Args:
            streams: Standard output, error and input, where they are somebody else's.
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
        """End it; its programs have ended."""
        self._orders.close()
        self._process.wait()


class ForkedProcess:
    """A program under way, asked as a `subprocess.Popen` is."""

    def __init__(
        self, arguments: list[str], answers: socket.socket, out: IO[str], err: IO[str]
    ) -> None:
        self.args = arguments
        self._answers, self._out, self._err = answers, out, err
        # Unbuffered: what is left to be read is seen by `select`.
        self._lines = answers.makefile("rb", buffering=0)
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, minus the number of a signal that ended it; None = it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has one; raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._lines.readline())
            self._answers.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it has written, once it has ended."""
        self.wait(timeout)
        for file in (self._out, self._err):
            file.seek(0)
        return self._out.read(), self._err.read()

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _files(log: Path | None) -> tuple[IO[str], IO[str]]:
    """What a program writes its standard output and error to."""
    if log:
        return log.open("a+"), log.open("a+")
    return tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")


_SERVERS: dict[frozenset[tuple[str, str]], ForkServer] = {}
_TURN = threading.Lock()


def server_for(environment: Mapping[str, str]) -> ForkServer:
    """The server whose modules were imported with these variables, started where it is missing."""
    # What is set to nothing counts as unset.
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
