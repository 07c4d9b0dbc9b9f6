"""The ledger's database: connections, settings of each dialect, and exclusive transactions."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text, update
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from moorage.adapters.ledger.tables import GATE, NEWEST
from moorage.adapters.ledger.traces import database_file, mark, must_be_there
from moorage.common.failures import Cause, Failure

BUSY_SECONDS = 30
"""How long a writer waits for other writers."""

POLL_SECONDS = (0.001, 0.01)
"""Minimum and maximum pause between two attempts of a writer."""

MOST_ROWS = 3
"""How many undecodable rows of a table a failure names."""

CONTEXT = 30
"""Characters that a failure shows before and after the one that cannot be written."""

NEWER = "Use the newer moorage that has migrated this ledger, or restore a backup from before with"
OLDER = (
    "Use the version that the others use, or migrate it with `moorage ledger migrate`: then older"
    " versions of moorage cannot open it any more, on any machine."
)

SILENT = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""Limits for a silent PostgreSQL server, half a minute in all, in seconds (`tcp_user_timeout` in
ms). By default Linux waits for at least a quarter of an hour; meanwhile the leases of locks would
run out. https://www.postgresql.org/docs/current/libpq-connect.html"""

IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}
"""SQLite's codes for a transaction that cannot begin because of other processes. `PROTOCOL`: too
many processes began a transaction at the same moment. `LOCKED` is not among them: it is a conflict
of a connection with itself, so waiting does not help. https://www.sqlite.org/rescode.html"""

DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
NO_ROOM_PERHAPS = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""SQLite's codes that may mean that the disk has no space for its journal files."""

STATES = {
    # https://www.postgresql.org/docs/current/errcodes-appendix.html
    "53100": Cause.DISK_FULL,
    "XX001": Cause.LEDGER_DAMAGED,
    "XX002": Cause.LEDGER_DAMAGED,
}
"""PostgreSQL's own codes: disk full, data corrupted, index corrupted."""

UNDECODABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Errors of decoding a row that moorage has not written."""

MALFORMED = "malformed JSON"
"""SQLite's message when a query extracts a part of a text that is not JSON."""

ROOM = 256 * 1024
"""Bytes that the journal files of SQLite need before anything is written."""

PRIVATE = 0o600
"""Mode of a ledger's file: its records contain the last lines of engines' logs."""

URLS = "Write `sqlite:////path/to/ledger.db` or `postgresql://user@host/database`."
MAKE_ROOM = "Free some space on the disk of the ledger; nothing was written in part."


def open_database(url: str, *, migrates: bool = False) -> Engine:
    """Connect. Several processes may do so at the same time.

    A new ledger gets its folder and its tables, and an SQLite file is migrated. One on a server may
    have users of other versions: it is migrated only if `migrates`.

    Raises:
        Failure: `LEDGER_UNAVAILABLE`, `LEDGER_DAMAGED` or `DISK_FULL` with the reason, without the
            password of the URL. Also when the file of an earlier ledger is missing or empty, or the
            schema on a server is of another version.
    """
    parsed = parsed_url(url)
    shown, path = shown_url(parsed), database_file(parsed)
    try:
        if path:
            must_be_there(path)
        engine = _connect(parsed)
        if (schema := _schema(engine)) != NEWEST:
            if schema and not path and not migrates:
                _refuse_older(schema, shown)
            _migrate(engine, shown, path)
        if path:
            mark(path)
    except ImportError as error:
        advice = "Install the driver, for PostgreSQL: `pip install '.[postgres]'` in the checkout."
        raise Failure(Cause.LEDGER_UNAVAILABLE, f"{shown}: {error}", suggestion=advice) from error
    except UnicodeDecodeError as error:  # from SQLite's message about a damaged file
        raise unreadable(error, shown) from error
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise trouble(error, shown) from error
    return engine


def migrate_database(url: str) -> None:
    """Bring a ledger to this version's schema, wherever it is; raises as `open_database`."""
    open_database(url, migrates=True).dispose()


def _schema(engine: Engine) -> str:
    """The version of the schema; empty = none yet. Alembic's import for this would take 0.15 s."""
    with engine.connect().execution_options(writes=False) as connection:
        try:
            found = connection.scalar(text("SELECT version_num FROM alembic_version"))
        except DBAPIError:
            return ""
    return str(found or "")


def _refuse_older(schema: str, shown: str) -> None:
    """Refuse a schema that this moorage would migrate."""
    from moorage.adapters.ledger.migrations import is_known  # noqa: PLC0415  (see `_schema`)

    if is_known(schema):
        why = f"{shown}: its schema is {schema}, and this moorage needs {NEWEST}"
        raise Failure(Cause.LEDGER_UNAVAILABLE, why, suggestion=OLDER)


def _migrate(engine: Engine, shown: str, path: Path | None) -> None:
    from moorage.adapters.ledger.migrations import CommandError, migrate  # noqa: PLC0415

    try:
        migrate(engine)
    except CommandError as error:
        why = f"{shown}: this moorage does not know its schema: {error}"
        restore = "moorage ledger restore FILE" if path else "pg_restore"
        advice = f"{NEWER} `{restore}`."
        raise Failure(Cause.LEDGER_UNAVAILABLE, why, suggestion=advice) from error


class LedgerPart:
    """Base of the parts of the ledger: they share one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine


@contextmanager
def gate(engine: Engine) -> Iterator[Connection]:
    """An exclusive transaction: other users of the gate wait for its end."""
    with _failures(engine, only_reads=False), engine.begin() as connection:
        connection.execute(update(GATE).values(epoch=GATE.c.epoch + 1))
        yield connection


@contextmanager
def ungated(engine: Engine) -> Iterator[Connection]:
    """A transaction for data that no decision depends on: the epoch stays."""
    with _failures(engine, only_reads=False), engine.begin() as connection:
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reading, without waiting for writers."""
    with (
        _failures(engine, only_reads=True),
        engine.connect().execution_options(writes=False) as connection,
    ):
        yield connection


@contextmanager
def _failures(engine: Engine, *, only_reads: bool) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        if MALFORMED in str(getattr(error, "orig", "")):  # in a stored row, not in a new one
            raise unreadable(error, shown_url(engine.url), _undecodable(engine)) from error
        raise trouble(error, shown_url(engine.url)) from error
    except UnicodeEncodeError as error:  # of a value that is asked for or written
        raise _no_text(error) from error
    except UNDECODABLE as error:
        rows = _undecodable(engine)
        if rows or only_reads or isinstance(error, JSONDecodeError | UnicodeDecodeError):
            raise unreadable(error, shown_url(engine.url), rows) from error
        raise  # an error of moorage, not of the ledger


def _no_text(error: UnicodeEncodeError) -> Failure:
    """The failure for a value with a surrogate, as Python reads a byte that is no UTF-8."""
    found = ascii(error.object[max(0, error.start - CONTEXT) : error.end + CONTEXT])
    return Failure(
        Cause.BAD_SETTING,
        f"found {found}; allowed: text in UTF-8",
        suggestion="Type the name or text again, in UTF-8.",
    )


def _undecodable(engine: Engine) -> tuple[str, ...]:
    # `check` imports this module.
    from moorage.adapters.ledger.check import undecodable  # noqa: PLC0415

    try:
        with engine.connect().execution_options(writes=False) as connection:
            return undecodable(connection, MOST_ROWS)
    except (SQLAlchemyError, *UNDECODABLE):
        return ()


def _connect(parsed: URL) -> Engine:
    if parsed.get_backend_name() != "sqlite":
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        waits = SILENT if parsed.drivername == "postgresql+psycopg" else {}
        own = {name: value for name, value in waits.items() if name not in parsed.query}
        return create_engine(parsed, pool_pre_ping=True, connect_args=own)
    if path := database_file(parsed):
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
    if path:
        event.listen(engine, "do_connect", lambda *_: _make_private(path))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Create the file of a new ledger for this user alone; SQLite's side files get the same mode.

    The file is never opened here: closing it would drop the locks that SQLite holds in this
    process. If it cannot be created, SQLite gives the reason afterwards.
    """
    with suppress(OSError):
        os.mknod(path, PRIVATE)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin its own transactions as readers. Two readers that both become writers
    # would wait for each other, so SQLite refuses one of them.
    connection.isolation_level = None
    # This is the only statement in which SQLite does not wait for other processes.
    _when_free()(connection.execute, "PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes", True):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite's own wait polls less and less often, so the writer that has waited longest gets its
    # turn last. Of eight writers one waited 2 s; with equal rates of polling, 0.3 s.
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        _when_free()(connection.exec_driver_sql, "BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")


def _when_free() -> Retrying:
    """Retries a statement while other processes use the file."""
    return Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_random(*POLL_SECONDS),
        stop=stop_after_delay(BUSY_SECONDS),
        reraise=True,
    )


def _is_busy(error: BaseException) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)
    return code & 0xFF in IN_USE


def trouble(error: Exception, where: str) -> Failure:
    """The failure for an error of SQLAlchemy or the driver; `where` is a URL without a password."""
    reason = getattr(error, "orig", None) or error
    detail = f"{where}: {(str(reason).splitlines() or [repr(reason)])[0]}"
    cause = _cause(reason, where)
    return Failure(cause, detail, suggestion=MAKE_ROOM if cause == Cause.DISK_FULL else None)


def unreadable(error: Exception, where: str, rows: Sequence[str] = ()) -> Failure:
    """The failure for an error of decoding; `rows` are the undecodable rows that were found."""
    reason = " ".join(str(error).split())[:300]
    found = "; ".join(rows) or f"a row cannot be read: {reason}"
    return Failure(Cause.LEDGER_DAMAGED, f"{where}: {found}")


def parsed_url(url: str) -> URL:
    """Parse the URL of a ledger; raises `LEDGER_UNAVAILABLE` when it is none."""
    try:
        return make_url(url)
    except ArgumentError as error:
        raise Failure(
            Cause.LEDGER_UNAVAILABLE, f"MOORAGE_LEDGER_URL: {error}", suggestion=URLS
        ) from error


def shown_url(url: URL) -> str:
    """A URL without its password."""
    return url.render_as_string(hide_password=True)


def _cause(error: BaseException, where: str) -> Cause:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Cause.DISK_FULL
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    if code in DAMAGED:
        return Cause.LEDGER_DAMAGED
    if code == sqlite3.SQLITE_FULL or (code in NO_ROOM_PERHAPS and _has_no_room(where)):
        return Cause.DISK_FULL
    return STATES.get(getattr(error, "sqlstate", "") or "", Cause.LEDGER_UNAVAILABLE)


def _has_no_room(where: str) -> bool:
    try:
        database = make_url(where).database
        return shutil.disk_usage(Path(database or "").parent).free < ROOM
    except (ArgumentError, OSError):
        return False
