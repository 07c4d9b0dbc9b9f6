"""Reading files that somebody else laid there: regular ones only, and no more than is expected."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.strict_json import LIMITS, JsonError, JsonLimits, decode
from moorage.common.units import human_bytes
from moorage.spec.safe import is_of_the_system

KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


def read_whole(path: Path, most: int) -> bytes:
    """The content of a file.

    Args:
        path: The file, or a link to it.
        most: Bytes that it may have.

    Raises:
        Failure: `SOURCE_CORRUPT` when it is larger, or no regular file.
        OSError: When it cannot be read.
    """
    with open_regular(path) as content:
        found = content.read(most + 1)
    if len(found) > most:
        raise _corrupt(path, f"is larger than {human_bytes(most)}")
    return found


def read_part(path: Path, start: int, stop: int) -> bytes:
    """The bytes of a file from one offset up to another, or to its end; raises as `read_whole`."""
    with open_regular(path) as content:
        content.seek(start)
        return content.read(stop - start)


def read_json(path: Path, limits: JsonLimits = LIMITS) -> Any:
    """The value in a JSON file; raises as `read_whole`, also for what is not JSON."""
    content = read_whole(path, limits.size)
    try:
        return decode(content, limits)
    except JsonError as error:
        raise _corrupt(path, str(error)) from None


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a file without ever waiting for it; raises as `read_whole`."""
    require_regular(path, path.stat())
    # It may have become another one since: that is not waited for either.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as content:
        require_regular(path, os.fstat(descriptor))
        _require_no_systems(path)
        yield content


def require_regular(path: Path, found: os.stat_result) -> None:
    """Check that a path stands for a regular file.

    Raises:
        Failure: `SOURCE_CORRUPT` when it stands for something else.
    """
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise _corrupt(path, f"is {kind}, and no regular file")


def _require_no_systems(path: Path) -> None:
    """A link must not lead to a file of the system; a store may lie wherever its owner wants."""
    real = os.path.realpath(path)
    if real != str(path.parent.resolve() / path.name) and is_of_the_system(real):
        raise _corrupt(path, f"is a link to {short(real)}, which is no model's")


def _corrupt(path: Path, why: str) -> Failure:
    return Failure(Cause.SOURCE_CORRUPT, f"{short(path.name)} {why}")


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
