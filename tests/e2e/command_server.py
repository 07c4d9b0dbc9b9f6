"""A process that has imported everything already and forks commands of moorage.

Importing takes longer than most commands. A fork is a process like any other: it can be killed
anywhere.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from moorage.cli.flows import PREFECT_DEFAULTS

REPOSITORY = Path(__file__).parents[2]
MESSAGE_BYTES = 1 << 20
EARLY = (
    *("PREFECT_", "MOORAGE_TASK_RUNNER", "RAY_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_"),
    *("PYTHON", "HOME", "XDG_", "LANG", "TZ"),
)
"""How variables begin that are read while modules are imported; a command reads all others."""

SERVERS = 3
"""So many are kept at a time; a process of pytest needs one for each Prefect server it talks to."""

NOTHING = ""
KILLS, FAILS, STOPS = "kills itself", "fails", "gets SIGTERM"
"""What happens at a point of a command."""


class CommandServer:
    """Forks commands, as many at a time as are wanted.

    Args:
        environment: Variables that count while modules are imported.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.forked_commands", str(theirs.fileno())],
                cwd=REPOSITORY,
                env={**PREFECT_DEFAULTS, **environment},
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

        Raises:
            subprocess.TimeoutExpired: It took longer.
        """
        order = {
            "arguments": arguments,
            "environment": dict(environment),
            "point": point,
            "victim": victim,
            "how": how,
            "signals": list(signals.items()),
        }
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code = self._ended(order, seconds, out.fileno(), err.fileno())
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(arguments, code, out.read(), err.read())

    def close(self) -> None:
        """End it; its commands have ended."""
        self._orders.close()
        self._process.wait()

    def _ended(self, order: dict[str, object], seconds: float, *files: int) -> int:
        """Exit status of a command, once it has one; minus the number of a signal that ended it."""
        answers, theirs = socket.socketpair()
        with answers, answers.makefile() as lines:
            with theirs:
                message = [json.dumps(order).encode()]
                socket.send_fds(self._orders, message, [theirs.fileno(), *files])
            number = int(lines.readline())
            with selectors.DefaultSelector() as ready:
                ready.register(answers, selectors.EVENT_READ)
                if not ready.select(seconds):
                    os.kill(number, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(str(order["arguments"]), seconds)
            return int(lines.readline())


_SERVERS: OrderedDict[frozenset[tuple[str, str]], CommandServer] = OrderedDict()
_TURN = threading.Lock()


def server_for(environment: Mapping[str, str]) -> CommandServer:
    """The server whose modules were imported with these variables, started where it is missing."""
    counting = {name: value for name, value in environment.items() if name.startswith(EARLY)}
    own = {name: value for name, value in os.environ.items() if not name.startswith(EARLY)}
    key = frozenset(counting.items())
    with _TURN:
        if key not in _SERVERS:
            if len(_SERVERS) == SERVERS:
                _SERVERS.popitem(last=False)[1].close()
            _SERVERS[key] = CommandServer(own | counting)
        _SERVERS.move_to_end(key)
        return _SERVERS[key]


@atexit.register
def _close_all() -> None:
    while _SERVERS:
        _SERVERS.popitem()[1].close()
