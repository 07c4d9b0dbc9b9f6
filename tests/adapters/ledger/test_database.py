from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from moorage.adapters.ledger import database
from moorage.adapters.ledger.database import gate, open_database
from moorage.common.failures import Cause, Failure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture
def writer(path: Path, engine: Engine) -> Iterator[sqlite3.Connection]:  # noqa: ARG001
    """Somebody who writes and does not end."""
    own = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(own):
        own.execute("BEGIN IMMEDIATE")
        yield own


def epoch(engine: Engine) -> int:
    with gate(engine) as connection:
        number: int = connection.exec_driver_sql("SELECT epoch FROM gate").scalar_one()
        return number


def test_nobody_else_reads_a_ledger(path: Path, engine: Engine) -> None:
    assert epoch(engine)
    files = [one for one in path.parent.iterdir() if one.name.startswith(path.name)]
    assert {one.name for one in files} >= {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    open_to_others = [one.name for one in files if one.stat().st_mode & 0o077]
    assert open_to_others in ([], [f"{path.name}.made"]), "but for the mark, which says nothing"


def test_a_further_connection_takes_no_lock_from_the_first(path: Path, engine: Engine) -> None:
    look = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT epoch FROM gate')"
    with engine.connect(), engine.connect():
        assert epoch(engine)
        subprocess.run([sys.executable, "-c", look], check=True)
        assert path.with_name(f"{path.name}-wal").exists(), "else writes of this process are lost"


def test_whoever_waits_for_another_writer_is_served_when_that_one_has_ended(
    engine: Engine, writer: sqlite3.Connection
) -> None:
    threading.Timer(0.05, writer.rollback).start()
    assert epoch(engine) + 1 == epoch(engine)


def test_a_writer_that_does_not_end_is_waited_for_no_longer_than_that(
    engine: Engine, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with pytest.raises(Failure, match="database is locked") as caught:
        epoch(engine)
    assert caught.value.cause is Cause.LEDGER_UNAVAILABLE
    writer.rollback()
    assert epoch(engine) > 0


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_RECOVERY, True),
        (sqlite3.SQLITE_PROTOCOL, True),
        (sqlite3.SQLITE_LOCKED, False),
        (sqlite3.SQLITE_CORRUPT, False),
    ],
)
def test_only_other_processes_are_waited_for(code: int, waits: bool) -> None:
    error = sqlite3.OperationalError()
    error.sqlite_errorcode = code
    assert database._is_busy(error) == waits


def test_what_is_no_wait_is_told_at_once(path: Path, engine: Engine) -> None:
    engine.dispose()
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(Failure, match="not a database"):
        epoch(engine)


@pytest.mark.parametrize("query", ["", "?connect_timeout=2"])
def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """A host that froze, or a network that swallows everything; 2 s is the least there is."""
    pytest.importorskip("psycopg", exc_type=ImportError)
    if not query:
        monkeypatch.setitem(database.SILENT, "connect_timeout", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(Failure) as caught:
            open_database(f"postgresql://moorage@127.0.0.1:{port}/ledger{query}")
    assert caught.value.cause is Cause.LEDGER_UNAVAILABLE
