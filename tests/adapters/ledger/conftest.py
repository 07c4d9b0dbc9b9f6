from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

import pytest
from sqlalchemy import create_engine, text

from moorage.adapters.ledger import Ledger
from tests.adapters.ledger.team import Team

START_SECONDS = 20


class Account(TypedDict, total=False):
    """The user of a process, as arguments of `subprocess`; empty = the user of the tests."""

    user: int
    group: int


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    """Calls a function in several processes at the same moment."""
    processes = Team()
    yield processes
    processes.end()


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """A throw-away PostgreSQL server on a socket; the URL of its first database."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/initdb")
    advice = "psycopg is missing: pip install 'moorage[postgres]'"
    pytest.importorskip("psycopg", reason=advice, exc_type=ImportError)
    folder = Path(tempfile.mkdtemp(prefix="moorage-pg-"))
    account = _unprivileged(folder)
    data, postgres = str(folder / "data"), str(programs[-1].with_name("postgres"))
    arguments = ["-D", data, "-A", "trust", "-U", "moorage", "--no-sync"]
    initdb = [str(programs[-1]), *arguments, "--no-instructions"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **account)
    options = ["listen_addresses=", "fsync=off", f"unix_socket_directories={folder}"]
    command = [postgres, "-D", data]
    command += [word for option in options for word in ("-c", option)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **account)
    url = f"postgresql+psycopg://moorage@/postgres?host={folder}"
    try:
        _wait(url, server)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nobody needs its data any more
        server.wait()
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database of each kind (of PostgreSQL a schema, which is faster to make)."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    cluster: str = request.getfixturevalue("cluster")
    name = f"t{time.monotonic_ns()}"
    _execute(cluster, f"CREATE SCHEMA {name}")
    return f"{cluster}&options=-csearch_path%3D{name}"


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Ledger]]:
    """Opens the ledger, any number of times."""
    ledgers: list[Ledger] = []

    def open_ledger() -> Ledger:
        ledgers.append(Ledger(url))
        return ledgers[-1]

    yield open_ledger
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def ledger(opened: Callable[[], Ledger]) -> Ledger:
    return opened()


def _unprivileged(folder: Path) -> Account:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return {}
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid}


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < give_up:
        try:
            return _execute(url, "SELECT 1")
        except Exception:  # not there yet
            time.sleep(0.05)
    pytest.skip("PostgreSQL does not start here")


def _execute(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
