"""Disks that are full or must not be written, told apart from other errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.common.failures import Cause, Failure

CAUSES = {
    errno.ENOSPC: Cause.DISK_FULL,
    errno.EDQUOT: Cause.DISK_FULL,
    errno.EACCES: Cause.STORE_UNWRITABLE,
    errno.EPERM: Cause.STORE_UNWRITABLE,
    errno.EROFS: Cause.STORE_UNWRITABLE,
}


@contextmanager
def watching_the_disk(folder: Path) -> Iterator[None]:
    """Turn what a disk refuses into a failure with its cause.

    Raises:
        Failure: `DISK_FULL` (a used-up quota too) or `STORE_UNWRITABLE`.
    """
    try:
        yield
    except OSError as error:
        if (cause := CAUSES.get(error.errno or 0)) is None:
            raise
        raise Failure(cause, f"writing below {folder}: {error}") from None
