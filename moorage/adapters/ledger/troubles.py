"""Errors of a database as failures."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from moorage.common.failures import Cause, Failure

DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
FULL = {sqlite3.SQLITE_FULL}
NO_ROOM_PERHAPS = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""SQLite's codes that may mean that its journal files have no room."""

STATES = {
    # https://www.postgresql.org/docs/current/errcodes-appendix.html
    "53100": Cause.DISK_FULL,
    "XX001": Cause.LEDGER_DAMAGED,
    "XX002": Cause.LEDGER_DAMAGED,
}
"""PostgreSQL's own codes: disk full, data corrupted, index corrupted."""

UNDECODABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Raised by decoding a row that moorage has not written."""

ROOM = 256 * 1024
"""Bytes that the journal files of SQLite need before anything is written."""

MAKE_ROOM = "Free some space on the disk of the ledger; nothing was written in part."


def trouble(error: Exception, where: str) -> Failure:
    """The failure for an error of the database.

    Args:
        error: As SQLAlchemy or the driver raised it.
        where: URL of the ledger, without a password.
    """
    reason = getattr(error, "orig", None) or error
    detail = f"{where}: {(str(reason).splitlines() or [repr(reason)])[0]}"
    cause = _cause(reason, where)
    if cause == Cause.DISK_FULL:
        return Failure(cause, detail, suggestion=MAKE_ROOM)
    return Failure(cause, detail)


def unreadable(error: Exception, where: str, rows: Sequence[str] = ()) -> Failure:
    """The failure for rows that cannot be decoded.

    Args:
        error: Raised by reading one.
        where: URL of the ledger, without a password.
        rows: The rows with their reasons, as far as they were found.
    """
    reason = " ".join(str(error).split())[:300]
    found = "; ".join(rows) or f"a row cannot be read: {reason}"
    return Failure(Cause.LEDGER_DAMAGED, f"{where}: {found}")


def shown_url(url: URL) -> str:
    """A URL without its password."""
    return url.render_as_string(hide_password=True)


def _cause(error: BaseException, where: str) -> Cause:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Cause.DISK_FULL
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    if code in DAMAGED:
        return Cause.LEDGER_DAMAGED
    if code in FULL or (code in NO_ROOM_PERHAPS and _has_no_room(where)):
        return Cause.DISK_FULL
    return STATES.get(getattr(error, "sqlstate", "") or "", Cause.LEDGER_UNAVAILABLE)


def _has_no_room(where: str) -> bool:
    try:
        database = make_url(where).database
        return shutil.disk_usage(Path(database or "").parent).free < ROOM
    except (ArgumentError, OSError):
        return False
