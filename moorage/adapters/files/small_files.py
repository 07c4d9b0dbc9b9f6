"""Reading files that people write: plain files of limited size, whatever lies in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from moorage.common.units import human_bytes


def read_small(path: Path, most: int) -> bytes:
    """Read a whole file, without ever waiting.

    What was opened is looked at, not what the path names: it may be another file by then.

    Args:
        path: A file.
        most: Its largest size in bytes.

    Raises:
        OSError: It is not there, cannot be read, is no plain file (a folder, a pipe, a device), or
            is too large.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError as error:  # a zero byte in its name
        raise OSError(str(error)) from None
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"{path} is no plain file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"{path} is larger than {human_bytes(most)}")
    return content
