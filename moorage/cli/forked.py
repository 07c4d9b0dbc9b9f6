"""Hand a command to the fork server, if one waits; see `fork_server`.

This module imports nothing of moorage, since imports take most of a command's time. The fork gets
this process's streams, folder, variables and signals, so the command seems to run here.
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
"""Folder in the home, and name in it, of the fork server's socket."""

SWITCH, OFF = "MOORAGE_FORKED", ("0", "false", "no", "off")
SERVICES = frozenset(("serve", "gateway", "metrics"))
"""Commands that may run for days, and are therefore not forked."""

HEADER_BYTES = 8
"""Size of the header, which has the length of the order that follows."""

ACCEPTED = b"accepted"
HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOST = 1
"""Exit status when the command's is unknown because the fork server was killed."""


def run_forked(arguments: Sequence[str]) -> int | None:
    """Run a command in a fork; a signal that kills the command also kills this process.

    Returns:
        Its exit status. None = the command has not run: no fork server waits, or it may not take
        this command, because its variables, surroundings or code differ.
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
    """A pidfd of the fork that accepted the command; None = it was refused."""
    home = os.path.expanduser(os.environ.get("MOORAGE_HOME") or "~/.moorage")
    folder = os.open(os.path.join(home, FOLDER), os.O_PATH | os.O_DIRECTORY)
    here = os.open(".", os.O_PATH)
    try:
        # A socket's address has at most 107 bytes, and the home's path may be longer.
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
    """Forward signals to the command until it ends; returns its exit status."""
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
    """End by the signal that ended the command."""
    with suppress(OSError):  # SIGKILL and SIGSTOP have no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
