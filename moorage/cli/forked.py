"""Hands a command to the process that forks commands, where one waits; see `fork_server`.

It imports nothing of ours: the import is what takes a command's time. Streams, folder and variables
go to the fork, and signals. So it is as if the command ran here.
"""

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

FOLDER, SOCKET = "api", "commands"  # as in `home_server`, whose import takes long
"""Where in the home it listens."""

SWITCH, OFF = "MOORAGE_FORKED", ("0", "false", "no", "off")
SERVICES = frozenset(("serve", "gateway", "metrics"))
"""Commands that may run for days, and so have a process of their own."""

HEADER_BYTES = 8
"""How long the order is that follows it."""

ACCEPTED = b"accepted"
HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOST = 1
"""Exit status of a command of which none is known, since the process that forked it was killed."""


def run_forked(arguments: Sequence[str]) -> int | None:
    """Run a command in a fork; a signal that ends the command ends this process too.

    Returns:
        Its exit status. None = nothing has run: no process waits here, or it may not take this
        command, as it has other variables, another place or other code.
    """
    if os.environ.get(SWITCH, "").lower() in OFF or SERVICES.intersection(arguments):
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            command = _hand_over(connection, arguments)
        except OSError:
            return None
        return None if command is None else _follow(connection, command)


def _hand_over(connection: socket.socket, arguments: Sequence[str]) -> int | None:
    """A file descriptor of the command's process, once that has taken it; None = it does not."""
    home = os.path.expanduser(os.environ.get("MOORAGE_HOME") or "~/.moorage")
    folder = os.open(os.path.join(home, FOLDER), os.O_PATH | os.O_DIRECTORY)
    here = os.open(".", os.O_PATH)
    try:
        # The address of a socket has 107 bytes at most, a path many more.
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
        order = json.dumps(_order(arguments)).encode()
        header = len(order).to_bytes(HEADER_BYTES, "big")
        socket.send_fds(connection, [header], [0, 1, 2, here])
        connection.sendall(order)
    finally:
        os.close(folder)
        os.close(here)
    answer, files, _, _ = socket.recv_fds(connection, len(ACCEPTED), 1)
    return files[0] if answer == ACCEPTED else None


def _order(arguments: Sequence[str]) -> dict[str, object]:
    umask = os.umask(0o077)
    os.umask(umask)
    ignored = [one for one in HANDED_ON if signal.getsignal(one) == signal.SIG_IGN]
    return {
        "arguments": [sys.argv[0], *arguments],
        "environment": dict(os.environ),
        "umask": umask,
        "ignored": ignored,
        "code": [sys.executable, __file__],
    }


def _follow(connection: socket.socket, command: int) -> int:
    """Hand on signals until the command has ended."""
    sent: list[int] = []

    def hand_on(number: int, _: FrameType | None) -> None:
        sent.append(number)
        _signal(command, number)

    def pause(*_: object) -> None:
        _signal(command, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        _signal(command, signal.SIGCONT)

    for number in HANDED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, hand_on)
    signal.signal(signal.SIGTSTP, pause)
    status = connection.recv(HEADER_BYTES)
    if not status:
        select.select([command], [], [])
        return LOST
    if int(status) < 0:
        _end_by(-int(status))
    return int(status)


def _signal(command: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(command, number)


def _end_by(number: int) -> None:
    """End as the command did, by a signal."""
    with suppress(OSError):  # two of them have no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
