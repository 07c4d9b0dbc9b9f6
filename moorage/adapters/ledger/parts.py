"""Unfinished copies of a ledger: each has the name of its process, and goes once that has ended."""

from __future__ import annotations

import hashlib
import re
import time
from contextlib import suppress
from pathlib import Path

from moorage.adapters.ledger.lock_owner import Owner, is_alive, this_process

BESIDE = ("-wal", "-shm", "-journal")
"""Files that belong to an SQLite database, by what they are called after it."""

NAME = re.compile(r"\.part-([0-9a-f]{8})-(\d+)-(\d+)(-wal|-shm|-journal)?$")
"""How the name of an unfinished copy ends: machine, number and start of its process."""

ABANDONED_SECONDS = 3600
"""How long nobody has written to a copy of another machine that is abandoned."""


def part_for(target: Path) -> Path:
    """Where this process makes the copy that becomes a file."""
    own = this_process()
    return target.with_name(f"{target.name}.part-{_machine(own)}-{own.pid}-{own.started_at}")


def remove_part(part: Path) -> None:
    """Remove an unfinished copy, with the files that belong to it."""
    for suffix in ("", *BESIDE):
        Path(f"{part}{suffix}").unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished copies in a folder whose process has ended without doing so.

    Whether a process of another machine lives nobody knows here: its copy goes once nobody has
    written to it for an hour. A machine is another one after each of its starts.
    """
    machine = _machine(this_process())
    with suppress(OSError):
        for path in folder.iterdir():
            if (name := NAME.search(path.name)) and _is_abandoned(path, name, machine):
                path.unlink(missing_ok=True)


def _is_abandoned(path: Path, name: re.Match[str], machine: str) -> bool:
    if name[1] == machine:
        return not is_alive(int(name[2]), int(name[3]))
    return time.time() - path.stat().st_mtime > ABANDONED_SECONDS


def _machine(owner: Owner) -> str:
    return hashlib.sha256(owner.machine.encode()).hexdigest()[:8]
