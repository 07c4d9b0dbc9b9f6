"""Servers that a deploy needs, which are killed and started again: PostgreSQL and Prefect's."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from moorage.adapters.prefect.home_server import QUIET
from tests.fork_server import ForkedProcess
from tests.prefect_server import (
    PrefectApi,
    begin_server,
    free_port,
    prepared_home,
)
from tests.waiting import until


class Server:
    """A program that can be killed as a whole, and started again with what it has kept.

    Args:
        begin: Starts it; it leads a session of its own.
        answers: Whether it does.
    """

    def __init__(
        self, begin: Callable[[], Popen[Any] | ForkedProcess], answers: Callable[[], bool]
    ) -> None:
        self._begin, self._answers = begin, answers
        self.start()

    @property
    def pid(self) -> int:
        """Process number of the first of its processes."""
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = self._begin()
        until(self._answers, unless=lambda: self._process.poll() is not None)

    def start_again(self) -> None:
        """Start it after it was killed."""
        self._process.wait()
        self.start()

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            kill_whole(self.pid)
        self._process.wait()


def kill_whole(pid: int) -> None:
    """Kill a process and all its descendants."""
    first = psutil.Process(pid)
    everyone = [first, *first.children(recursive=True)]
    for one in everyone:
        one.kill()
    psutil.wait_procs(everyone[1:], timeout=10)


class Postgres(Server):
    """A database server on a socket.

    Attributes:
        url: The URL of its first database.
    """

    def __init__(self) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not programs:
            pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/initdb")
        self._folder = Path(tempfile.mkdtemp(prefix="moorage-pg-"))
        options = _unprivileged(self._folder)
        data = self._folder / "data"
        options |= {"cwd": self._folder}
        arguments = ["-A", "trust", "-U", "moorage", "--no-sync", "--no-instructions"]
        initdb: list[Any] = [programs[-1], "-D", data, *arguments]
        subprocess.run(initdb, check=True, capture_output=True, **options)
        socket = f"unix_socket_directories={self._folder}"
        settings = ["listen_addresses=", "fsync=off", socket]
        command: list[Any] = [programs[-1].with_name("postgres"), "-D", data]
        command += [word for one in settings for word in ("-c", one)]
        self.url = f"postgresql+psycopg://moorage@/postgres?host={self._folder}"
        options |= {"stdout": DEVNULL, "stderr": DEVNULL, "start_new_session": True}
        begin = partial(Popen, command, **options)
        super().__init__(begin, self._is_there)

    def close(self) -> None:
        """End it for good."""
        self.kill()
        shutil.rmtree(self._folder)

    def _is_there(self) -> bool:
        engine = create_engine(self.url)
        try:
            with engine.connect() as connection:
                connection.execute(text("SELECT 1"))
            return True
        except OperationalError:
            return False
        finally:
            engine.dispose()


class Prefect(Server):
    """A Prefect server with its own database.

    Attributes:
        environment: What a command needs to use it.
    """

    def __init__(self, folder: Path) -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}/api"
        self.environment = {
            **prepared_home(folder),
            "PREFECT_API_URL": url,
            **QUIET,
            "PREFECT_CLI_PROMPT": "false",
        }
        begin = partial(begin_server, port, {**os.environ, **self.environment})
        super().__init__(begin, PrefectApi(url).is_healthy)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return {}
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid}
