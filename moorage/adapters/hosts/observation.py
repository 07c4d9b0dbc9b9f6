"""A runtime's view of a workload: its state, and the end of its log."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.common.units import MIB
from moorage.common.values import Value

if TYPE_CHECKING:
    from docker.models.containers import Container

MOST_BYTES = 4 * MIB
"""Limit of the read part of a log, its end. No engine writes so much at its start."""

MOST_LINE = 8192
"""Limit of the characters of a line. Lines that show a cause have some hundred."""

READ_SECONDS = 15.0
"""Limit for reading a log from a daemon."""

KILLED = 137
"""Exit code of a container whose program got SIGKILL."""


class Observation(Value):
    """The state of a container or process.

    Attributes:
        exit_code: Exit status of the last run; None = unknown or still running.
        out_of_memory: Whether the kernel killed it because memory ran out.
        restarts: How often its runtime has restarted it after an exit.
        ready: Whether its runtime reports that it serves; None = the runtime cannot tell.
        detail: The state in words.
    """

    running: bool
    exit_code: int | None = None
    out_of_memory: bool = False
    restarts: int = 0
    ready: bool | None = None
    detail: str

    @property
    def with_exit_code(self) -> str:
        """The state in words, and the exit code if it is known."""
        if self.exit_code is None:
            return self.detail
        text = self.detail.replace("has ended", "exited")
        joint = " with" if text.endswith("exited") else ", exit"
        return f"{text}{joint} code {self.exit_code}"


def log_of_file(path: Path, tail: int) -> str:
    """The last lines of a file; empty if it is missing or unreadable."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - MOST_BYTES))
            return _lines(log.read(MOST_BYTES), tail)
    except OSError:
        return ""


def log_of_container(container: Container, tail: int | None = None, **streams: bool) -> str:
    """The last lines of a container's output.

    Args:
        tail: Number of lines; None = up to `MOST_BYTES`.
        streams: Whether to include `stdout` and `stderr`.
    """
    stream = container.logs(stream=True, follow=False, tail=tail or "all", **streams)
    # The library removes the time-out of a stream, so a timer closes it to stop the reading.
    watchdog = threading.Timer(READ_SECONDS, stream.close)
    watchdog.start()
    try:
        return _lines(last_bytes(stream), tail)
    finally:
        watchdog.cancel()


def last_bytes(pieces: Iterable[bytes], most: int = MOST_BYTES) -> bytes:
    """The last bytes of a stream of pieces."""
    kept = bytearray()
    for piece in pieces:
        kept += piece
        if len(kept) > 2 * most:
            del kept[:-most]
    return bytes(kept[-most:])


def _lines(data: bytes, tail: int | None) -> str:
    text = re.sub(r"\r\n?", "\n", data.decode(errors="replace"))  # progress bars end lines so
    if tail is not None:
        text = "\n".join(text.removesuffix("\n").rsplit("\n", tail)[-tail:])
    return re.sub(rf"([^\n]{{{MOST_LINE}}})[^\n]+", r"\1...", text)
