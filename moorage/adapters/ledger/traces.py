"""Traces of an earlier ledger: if they exist, no new one replaces a missing or empty file."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from sqlalchemy import URL

from moorage.adapters.transfer.checksum import size_of
from moorage.common.failures import Cause, Failure

LOGGER = logging.getLogger(__name__)

MARKER = ".made"
"""Suffix of the file that stays in the folder of a ledger after its first opening."""

MARKER_TEXT = "A ledger was made in this folder. Remove it and this file to begin a new one.\n"

WRITE_AHEAD = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps after the first write while a database is in use."""

MOST_FILES = 1000
"""Limit of the files that are read in the folder of a ledger."""


def database_file(url: URL) -> Path | None:
    """The file of an SQLite database; None = a database without a file."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return None if str(url.database).startswith("file:") else Path(str(url.database))


def must_be_there(path: Path) -> None:
    """Refuse a missing or empty file if there are traces of an earlier ledger.

    A process that creates a ledger writes a page of its file before it leaves any trace.

    Raises:
        Failure: `LEDGER_DAMAGED` for an empty file, `LEDGER_UNAVAILABLE` for a missing file.
    """
    if size_of(path) > 0:
        return
    exists = path.exists()
    traces = list(_traces(path, exists=exists))
    if size_of(path) > 0:
        return
    if not traces:
        if exists:
            LOGGER.warning("%s is empty (0 bytes): a new ledger is made in it", path)
        return
    found = f"{', '.join(traces)} {'shows' if len(traces) == 1 else 'show'}"
    what = "is empty (0 bytes)" if exists else "is not there"
    raise Failure(
        Cause.LEDGER_DAMAGED if exists else Cause.LEDGER_UNAVAILABLE,
        f"{path} {what}, but {found} that there was a ledger",
        suggestion="Restore a backup with `moorage ledger restore FILE`. To begin a new ledger,"
        " which knows nothing of what runs, move away what is named above.",
    )


def mark(path: Path) -> None:
    """Write the marker of a ledger into its folder, if the folder is writable."""
    with suppress(OSError), path.with_name(path.name + MARKER).open("x") as marker:
        marker.write(MARKER_TEXT)


def _traces(path: Path, *, exists: bool) -> Iterator[str]:
    """Files that show an earlier ledger.

    If the ledger's file is missing, only files whose names begin with its name count: the folder
    may hold another ledger.
    """
    side_files = [Path(f"{path}{suffix}") for suffix in (MARKER, *WRITE_AHEAD)]
    yield from (str(one) for one in side_files if size_of(one) > 0)
    with suppress(OSError):
        for one in islice(path.parent.iterdir(), MOST_FILES):
            if one != path and (exists or one.name.startswith(path.name)) and _is_ledger(one):
                yield str(one)
        engines = path.parent / "run"
        if exists and engines.is_dir() and any(engines.iterdir()):
            yield str(engines)


def _is_ledger(path: Path) -> bool:
    """Whether a file is a ledger, such as a backup. It is not changed."""
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    query = "SELECT count(*) FROM sqlite_master WHERE name IN ('releases', 'gate')"
    with suppress(OSError, sqlite3.Error, UnicodeDecodeError):
        if path.is_file():
            with closing(sqlite3.connect(address, uri=True)) as database:
                return bool(database.execute(query).fetchone()[0] == 2)
    return False
