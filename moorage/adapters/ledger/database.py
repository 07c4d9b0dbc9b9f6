"""The ledger's database: connections, settings of each dialect, and exclusive transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, update
from sqlalchemy.exc import SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from moorage.adapters.ledger.tables import GATE
from moorage.adapters.ledger.traces import database_file, mark, must_be_there
from moorage.adapters.ledger.troubles import UNDECODABLE, shown_url, trouble, unreadable
from moorage.common.failures import Cause, Failure

BUSY_SECONDS = 30
"""How long a writer waits for others."""

POLL_SECONDS = (0.001, 0.01)
"""Minimum and maximum between two attempts of a writer."""

MOST_ROWS = 3
"""How many rows of a table that cannot be decoded are named."""

NEWER = (
    "Use the newer moorage that has opened this ledger, or restore a backup from before with"
    " `moorage ledger restore FILE`."
)

SILENT = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""Limits for a silent PostgreSQL server, half a minute in all. They are in seconds, but
`tcp_user_timeout` in ms. By default Linux waits for at least a quarter of an hour, and the leases
of locks run out meanwhile. https://www.postgresql.org/docs/current/libpq-connect.html"""

IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
"""SQLite's codes while others use the file. Waiting helps against no other code."""


def open_database(url: str) -> Engine:
    """Connect, and migrate the schema. Several processes may do so at the same time.

    Args:
        url: SQLAlchemy URL; the folder of an SQLite file is made.

    Raises:
        Failure: `LEDGER_UNAVAILABLE`, `LEDGER_DAMAGED` or `DISK_FULL` with the reason, without the
            password of the URL. Also when the file of an earlier ledger is missing or empty.
    """
    # Importing Alembic takes a quarter of a second, which refusing a bad spec should not.
    from moorage.adapters.ledger.migrating import CommandError, migrate  # noqa: PLC0415

    shown = "MOORAGE_LEDGER_URL"
    try:
        shown = shown_url(make_url(url))
        path = database_file(make_url(url))
        if path:
            must_be_there(path)
        engine = _connect(url)
        migrate(engine)
        if path:
            mark(path)
    except ImportError as error:
        advice = "Install the driver, for PostgreSQL: pip install 'moorage[postgres]'."
        raise Failure(Cause.LEDGER_UNAVAILABLE, f"{shown}: {error}", suggestion=advice) from error
    except UnicodeDecodeError as error:  # SQLite's message about a damaged file
        raise unreadable(error, shown) from error
    except CommandError as error:
        why = f"{shown}: this moorage does not know its schema: {error}"
        raise Failure(Cause.LEDGER_UNAVAILABLE, why, suggestion=NEWER) from error
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise trouble(error, shown) from error
    return engine


@contextmanager
def gate(engine: Engine) -> Iterator[Connection]:
    """An exclusive transaction: others that use the gate wait for its end."""
    with _failures(engine), engine.begin() as connection:
        connection.execute(update(GATE).values(epoch=GATE.c.epoch + 1))
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading, without waiting for writers."""
    try:
        with _failures(engine), engine.connect().execution_options(writes=False) as connection:
            yield connection
    except UNDECODABLE as error:
        raise unreadable(error, shown_url(engine.url)) from error


@contextmanager
def _failures(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise trouble(error, shown_url(engine.url)) from error
    except UNDECODABLE as error:
        if rows := _undecodable(engine):
            raise unreadable(error, shown_url(engine.url), rows) from error
        if isinstance(error, JSONDecodeError | UnicodeDecodeError):
            raise unreadable(error, shown_url(engine.url)) from error
        raise  # an error of moorage, not of the ledger


def _undecodable(engine: Engine) -> tuple[str, ...]:
    # That module imports this one.
    from moorage.adapters.ledger.check import undecodable  # noqa: PLC0415

    try:
        with engine.connect().execution_options(writes=False) as connection:
            return undecodable(connection, MOST_ROWS)
    except (SQLAlchemyError, *UNDECODABLE):
        return ()


def _connect(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        waits = SILENT if parsed.drivername == "postgresql+psycopg" else {}
        own = {name: value for name, value in waits.items() if name not in parsed.query}
        return create_engine(parsed, pool_pre_ping=True, connect_args=own)
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin its own transactions as readers. Two readers that both become writers
    # cannot wait for each other.
    connection.isolation_level = None
    # SQLite does not wait for other processes in this one statement.
    _when_free()(connection.execute, "PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes", True):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite's own wait polls less and less often, so the writer that has waited longest is served
    # last: of eight writers one waited 2 s, and 0.3 s when all poll at the same rate.
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        _when_free()(connection.exec_driver_sql, "BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")


def _when_free() -> Retrying:
    """Repeats a statement while other processes use the file."""
    return Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_random(*POLL_SECONDS),
        stop=stop_after_delay(BUSY_SECONDS),
        reraise=True,
    )


def _is_busy(error: BaseException) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return code & 0xFF in IN_USE
