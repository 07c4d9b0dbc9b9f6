"""Locks among all processes of this machine, by files. A lock is released when its holder dies.

The library is imported for the first lock: who only looks needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.system.parallel import TICK_SECONDS, Tick

if TYPE_CHECKING:
    from filelock import BaseFileLock


def file_lock(path: Path) -> BaseFileLock:
    """The lock of a file, which is made when the lock is taken."""
    from filelock import FileLock  # noqa: PLC0415  (see above)

    return FileLock(path)


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[bool]:
    """Take the lock of a file for the block; yields whether it was taken within this time.

    Raises:
        OSError: When the file cannot be made.
    """
    lock = file_lock(path)
    taken = _acquired(lock, seconds)
    try:
        yield taken
    finally:
        if taken:
            lock.release()


@contextmanager
def hold(lock: BaseFileLock, tick: Tick) -> Iterator[None]:
    """Hold a lock in the block; while waiting for it, call `tick` at least every half second.

    Raises:
        Failure: `STORE_UNWRITABLE` or `DISK_FULL` when the file of the lock cannot be made.
    """
    while True:
        with disk_failures(Path(lock.lock_file).parent):
            if _acquired(lock, TICK_SECONDS):
                break
        tick()
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: BaseFileLock, seconds: float) -> bool:
    from filelock import Timeout  # noqa: PLC0415  (see above)

    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        return False
    return True
