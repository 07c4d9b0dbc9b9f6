"""Opening the database: dialect settings, and transactions that stand in line."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, update
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from moorage.adapters.ledger.tables import GATE
from moorage.adapters.ledger.traces import database_file, mark, must_be_there
from moorage.adapters.ledger.troubles import UNDECODABLE, shown_url, trouble, unreadable
from moorage.common.failures import Cause, Failure

BUSY_SECONDS = 30
"""How long a writer waits for another one before it gives up."""

ASK_AGAIN_SECONDS = (0.001, 0.01)
"""How long a writer sleeps before it asks again, at least and at most."""

LOCKED_SECONDS = 0.02

MOST_ROWS = 3
"""How many rows of a table are named that cannot be decoded."""

NEWER = (
    "Use the newer moorage that has opened this ledger, or bring back a backup from before with"
    " `moorage ledger restore FILE`."
)

SILENT = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""When a PostgreSQL server counts as gone that says nothing: half a minute, in seconds but for
`tcp_user_timeout` (ms). Left alone, Linux waits for a quarter of an hour and longer, while the
leases of locks run out. https://www.postgresql.org/docs/current/libpq-connect.html"""

IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
"""What SQLite says while others use the file; anything else does not pass by waiting."""


def open_database(url: str) -> Engine:
    """Connect, and bring the schema up to date. Safe when several processes do so at once.

    Args:
        url: SQLAlchemy URL; the folder of an SQLite file is made.

    Raises:
        Failure: `LEDGER_UNAVAILABLE`, `LEDGER_DAMAGED` or `DISK_FULL` with the reason; never with
            the password of the URL. So is a file that is gone or empty where there was a ledger.
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
    except UnicodeDecodeError as error:  # of SQLite's own words about a damaged file
        raise unreadable(error, shown) from error
    except CommandError as error:
        why = f"{shown}: this moorage does not know its schema: {error}"
        raise Failure(Cause.LEDGER_UNAVAILABLE, why, suggestion=NEWER) from error
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise trouble(error, shown) from error
    return engine


@contextmanager
def gate(engine: Engine) -> Iterator[Connection]:
    """A transaction that is alone: others that use the gate wait until it ends."""
    with _failures(engine), engine.begin() as connection:
        connection.execute(update(GATE).values(epoch=GATE.c.epoch + 1))
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading; it waits for nobody."""
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
        raise  # a mistake of ours, which is not the ledger's


def _undecodable(engine: Engine) -> tuple[str, ...]:
    # It decodes with the modules that read through this one.
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


def _prepare_sqlite(connection: object, _record: object) -> None:
    # The driver must not open transactions of its own: it would begin them as readers, and two
    # readers that both turn into writers cannot wait for each other.
    connection.isolation_level = None  # type: ignore[attr-defined]
    _write_ahead(connection)
    connection.execute("PRAGMA foreign_keys=ON")  # type: ignore[attr-defined]


def _write_ahead(connection: object) -> None:
    # The one statement that SQLite refuses at once, instead of waiting, while others use the file.
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")  # type: ignore[attr-defined]
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in IN_USE or time.monotonic() > give_up:
                raise
            time.sleep(LOCKED_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes", True):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite's own wait asks ever more seldom, so whoever has waited longest is served last: of
    # eight writers one was seen to wait for 2 s, and for 0.3 s when all ask as often.
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        _begin_immediately(connection)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")


def _begin_immediately(connection: Connection) -> None:
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except OperationalError as error:
            code = getattr(error.orig, "sqlite_errorcode", 0)
            if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(random.uniform(*ASK_AGAIN_SECONDS))
