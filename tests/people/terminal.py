"""A terminal of 80 columns, in which a shell runs and somebody types; what it shows is read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

from tests.waiting import PATIENCE_SECONDS

COLUMNS, ROWS = 80, 400
"""So many rows that nothing is scrolled away."""

PROMPT = re.compile(rb"(\]: |> )$")
"""How a command asks that waits for a line."""

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def shown(
    commands: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    typed: Sequence[str] = (),
    called: str = "",
) -> str:
    """What stands on the terminal after commands of a shell: no escapes, no blanks at line ends.

    Args:
        commands: Of bash.
        folder: Where they run.
        environment: All variables.
        typed: Lines that are typed, each once something asks.
        called: What the folder is called on the terminal; as long as its path, so that lines break
            where they would.

    Raises:
        TimeoutError: The shell has not ended in time.
    """
    terminal, line = pty.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shell = subprocess.Popen(
        ["bash", "-c", commands],
        cwd=folder,
        env={**environment, "TERM": "xterm"},
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
    )
    os.close(line)
    try:
        written = _converse(terminal, shell, list(typed))
    finally:
        shell.kill()
        os.close(terminal)
    path = str(folder).encode()
    return _screen(written.replace(path, called.encode() if called else path))


def _converse(terminal: int, shell: subprocess.Popen[bytes], typed: list[str]) -> bytes:
    """All that is written until the shell ends; a line is typed at each prompt."""
    written, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.02)[0]:
            try:
                written += os.read(terminal, 1 << 16)
            except OSError:  # nobody has the other end any more
                break
        elif shell.poll() is not None:
            break
        if typed and PROMPT.search(ESCAPES.sub(b"", written[-200:])):
            os.write(terminal, f"{typed.pop(0)}\n".encode())
            written += _echo(terminal)
    else:
        raise TimeoutError(written.decode(errors="replace"))
    shell.wait()
    return written


def _echo(terminal: int) -> bytes:
    """What the terminal shows of a typed line, at once; the prompt is no prompt any more then."""
    return os.read(terminal, 1 << 16)


def _screen(written: bytes) -> str:
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(written)
    text = "\n".join(line.rstrip() for line in screen.display).rstrip()
    return f"{text}\n" if text else ""
