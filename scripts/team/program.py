"""Background programs: start, find again, wait for, stop."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Any

import psutil

REPORT_SECONDS = 2.0
LOG_LINES = 15


class Trouble(Exception):
    """An error with a message for a person."""


class Program:
    """One program of a folder.

    Args:
        name: Name in messages.
        folder: Folder of its log and process id.
        stop_signal: Signal that stops it.
        stop_seconds: Time that it may take to stop.
    """

    def __init__(self, name: str, folder: Path, stop_signal: Signals, stop_seconds: float) -> None:
        self.name = name
        file = name.lower().replace(" ", "-")
        self.log, self._number = folder / f"{file}.log", folder / f"{file}.pid"
        self._signal, self._seconds = stop_signal, stop_seconds

    def process(self) -> psutil.Process | None:
        """The process, if it runs; never another process that reuses its id."""
        with suppress(OSError, ValueError, psutil.Error):
            number, started = self._number.read_text().split()
            found = psutil.Process(int(number))
            if found.create_time() == float(started) and found.status() != psutil.STATUS_ZOMBIE:
                return found
        return None

    def start(
        self, command: list[str | Path], environment: Mapping[str, str], **options: Any
    ) -> None:
        """Start it, detached from this terminal."""
        with self.log.open("wb") as log:
            started = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        created = psutil.Process(started.pid).create_time()
        self._number.write_text(f"{started.pid} {created!r}\n")

    def wait(self, is_ready: Callable[[], bool], seconds: float, where: str) -> None:
        """Wait until it is ready, and report progress.

        Raises:
            Trouble: When it exits early, or is not ready in time; with the end of its log.
        """
        began = reported = time.monotonic()
        while not is_ready():
            now = time.monotonic()
            if self.process() is None:
                raise Trouble(f"{self.name} ended while it started{self._tail()}")
            if now - began > seconds:
                raise Trouble(f"{self.name} is not ready within {seconds:g} s{self._tail()}")
            if now - reported >= REPORT_SECONDS:
                reported = now
                say(f"{self.name}: starting, {now - began:.0f} s of at most {seconds:g} s")
            time.sleep(0.2)
        say(f"{self.name}: ready at {where} after {time.monotonic() - began:.1f} s")

    def stop(self) -> None:
        """Stop it, by force after `stop_seconds`; does nothing when it does not run."""
        process = self.process()
        if process is None:
            self._number.unlink(missing_ok=True)
            return
        began = reported = time.monotonic()
        with suppress(psutil.NoSuchProcess):
            process.send_signal(self._signal)
        while self.process() is not None:
            now = time.monotonic()
            if now - began > self._seconds:
                say(f"{self.name}: has not ended within {self._seconds:g} s, is killed")
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, Signals.SIGKILL)
                break
            if now - reported >= REPORT_SECONDS:
                reported = now
                say(f"{self.name}: ending, {now - began:.0f} s of at most {self._seconds:g} s")
            time.sleep(0.1)
        self._number.unlink(missing_ok=True)
        say(f"{self.name}: stopped")

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "".join(f"\n  {line}" for line in (f"the end of {self.log}:", *lines))


def must_be_free(port: int, option: str) -> None:
    """Refuse a port on which another program listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            advice = f"choose another one: make up UP='{option} PORT'"
            raise Trouble(f"port {port}: {error.strerror}; {advice}") from error


def say(text: str) -> None:
    """Print one line for a person, unbuffered."""
    print(text, file=sys.stderr, flush=True)
