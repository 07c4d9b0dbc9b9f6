"""Backup and restore of a ledger in an SQLite file."""

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import psutil

from moorage.adapters.hosts.supervisor import is_alive
from moorage.adapters.ledger.check import problems_of_file
from moorage.adapters.ledger.database import PRIVATE, open_database, parsed_url, shown_url, trouble
from moorage.adapters.ledger.locks import Owner, this_process
from moorage.adapters.ledger.traces import WRITE_AHEAD, database_file
from moorage.adapters.system.os_errors import disk_failures
from moorage.common.failures import Cause, Failure

NO_BACKUP = "The ledger was not changed. Name a file that `moorage ledger backup` has written."
STEP_PAGES = 2048
"""Pages of one step of a copy. A signal can interrupt it between steps."""

SIDE_FILES = (*WRITE_AHEAD, "-journal")
"""Suffixes of the side files of an SQLite database."""

NAME = re.compile(r"\.part-([0-9a-f]{8})-(\d+)-(\d+)(-wal|-shm|-journal)?$")
"""Suffix of an unfinished copy: machine, pid and start time of its process."""

ABANDONED_SECONDS = 3600
"""A copy by another machine counts as abandoned after this time without a write."""


def back_up(url: str, target: Path) -> None:
    """Copy a ledger into a new file and check the copy, while others use the ledger.

    Raises:
        Failure: When there is no ledger, the file exists, the copy is not sound, or the disk is
            full. Then no copy remains.
    """
    path = file_of(url, f"pg_dump --format=custom --file={target}")
    _must_exist(path)
    if target.exists():
        raise Failure(Cause.BAD_SETTING, f"{target} exists", suggestion="Name a new file.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise Failure(
            Cause.BAD_SETTING,
            f"{target.parent} is not there, or cannot be written",
            suggestion="Name a file in a folder where you may write.",
        )
    with _checked_copy(path, target) as copy:
        os.replace(copy, target)


def restore(url: str, source: Path, now: datetime) -> Path | None:
    """Replace a ledger by a backup. The former file stays in the folder, with the time in its name.

    Returns the former file; None when there was none.

    Raises:
        Failure: When the backup is not sound, or a process has the ledger open.
    """
    # Links are followed: processes have the file open under its own path.
    path = file_of(url, f"pg_restore --clean --if-exists --dbname=DATABASE {source}").resolve()
    _must_exist(source)
    _must_be_sound(source, NO_BACKUP)
    _must_not_be_in_use(path)
    kept = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S}")
    with disk_failures(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _checked_copy(source, path) as copy:
        before = _put_aside(path, kept)
        os.replace(copy, path)
    open_database(url).dispose()
    return before


def file_of(url: str, instead: str) -> Path:
    """The file of a ledger. A ledger without a file fails and suggests the command `instead`."""
    parsed = parsed_url(url)
    if path := database_file(parsed):
        return path
    raise Failure(
        Cause.BAD_SETTING,
        f"{shown_url(parsed)} is no file",
        suggestion=f"Use the tools of its database: `{instead}`.",
    )


@contextmanager
def _checked_copy(source: Path, target: Path) -> Iterator[Path]:
    """A checked copy next to its target; removed at the end of the block."""
    copy = part_for(target)
    remove_leftovers(target.parent)
    try:
        with disk_failures(target.parent):
            _copy(source, copy)
            _must_be_sound(copy)
            _to_disk(copy)
            yield copy
            _to_disk(target.parent)
    finally:
        for suffix in ("", *SIDE_FILES):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    readable = f"{source.absolute().as_uri()}?mode=rw"
    target.touch(PRIVATE, exist_ok=False)
    try:
        with (
            closing(sqlite3.connect(readable, uri=True)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            # Without a read transaction, concurrent writes would restart the copy.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
            # With steps and a callback, Python can handle signals between steps.
            original.backup(copy, pages=STEP_PAGES, progress=lambda *_: None)
            # This mode needs no side files, so the one file can be moved.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise trouble(error, str(source)) from error


def _put_aside(path: Path, kept: Path) -> Path | None:
    """Link a ledger under another name. The file also keeps its own name until it is replaced."""
    existed = path.exists()
    if existed:
        _empty_log(path)
        os.link(path, kept)
    # The new file must not get the log of the former one.
    for suffix in WRITE_AHEAD:
        side_file = Path(f"{path}{suffix}")
        if side_file.exists():
            os.replace(side_file, f"{kept}{suffix}")
    return kept if existed else None


def _empty_log(path: Path) -> None:
    """Write the log of a ledger into its file, which is then whole without it.

    A damaged file keeps its log.
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as own:
        own.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise Failure(
            Cause.LEDGER_UNAVAILABLE, f"{path} is not there", suggestion="Name an existing file."
        )


def _must_be_sound(path: Path, advice: str | None = None) -> None:
    if problems := problems_of_file(path):
        detail = f"{path}: {'; '.join(problems)}"
        raise Failure(Cause.LEDGER_DAMAGED, detail, suggestion=advice)


def _must_not_be_in_use(path: Path) -> None:
    """Refuse a file that processes have open: they would continue with the former file."""
    users = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):  # the process has exited, or belongs to another user
            if any(Path(file.path) == path for file in process.open_files()):
                users.append(f"process {process.pid} ({process.info['name']})")
    if users:
        raise Failure(
            Cause.LEDGER_UNAVAILABLE,
            f"{path} is in use by {', '.join(users)}",
            suggestion="End `moorage serve`, workers and deploys first.",
        )


def _to_disk(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def part_for(target: Path) -> Path:
    """The path of this process's unfinished copy of a file."""
    own = this_process()
    return target.with_name(f"{target.name}.part-{_machine(own)}-{own.pid}-{own.started_at}")


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished copies whose processes have exited.

    The processes of another machine are not visible here, so its copies are removed after an hour
    without a write. After a reboot a machine counts as another machine.
    """
    machine = _machine(this_process())
    with suppress(OSError):
        for path in folder.iterdir():
            if not (name := NAME.search(path.name)):
                continue
            if name[1] == machine:
                abandoned = not is_alive(int(name[2]), int(name[3]))
            else:
                abandoned = time.time() - path.stat().st_mtime > ABANDONED_SECONDS
            if abandoned:
                path.unlink(missing_ok=True)


def _machine(owner: Owner) -> str:
    return hashlib.sha256(owner.machine.encode()).hexdigest()[:8]
