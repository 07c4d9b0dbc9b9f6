"""The Prefect server of `moorage serve`: a process that is restarted whenever it exits."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from moorage.adapters.prefect import home_server
from moorage.cli.output import err

STOP_SECONDS = 30.0
PAUSE_SECONDS = 5.0
"""Pause before each restart, so that a server that cannot start takes little CPU time."""


class OwnServer:
    """A server process that is restarted whenever it exits.

    Without a server, current runs would continue, but no run, such as a reconcile, would begin.
    The latest process is recorded in the home, with the address of its API, for commands.
    """

    def __init__(self, home: Path, url: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._home, self._url, self._start = home, url, start
        self._ending = threading.Event()
        self._turn = threading.Lock()
        self.process = start()

    def keep(self) -> None:
        """Record the process, and from now on restart it whenever it exits."""
        self._record()
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Stop the process and wait until it has exited."""
        self._ending.set()
        with self._turn:
            home_server.forget_server(self._home)
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _watch(self) -> None:
        pause = 0.0
        while not self._ending.is_set():
            code = self.process.wait()
            if self._ending.wait(pause):
                return
            pause = PAUSE_SECONDS
            with self._turn:
                if self._ending.is_set():
                    return
                err.print(f"Prefect's server ended (status {code}) and is started again")
                self.process = self._start()
                self._record()

    def _record(self) -> None:
        home_server.record_server(self._home, self._url, self.process.pid)
