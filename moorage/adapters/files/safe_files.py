"""Safe reading of files that other users may have placed, and private files of this user."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import IO, Any, BinaryIO

from moorage.adapters.system.os_errors import unwritten
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.strict_json import LIMITS, JsonError, JsonLimits, decode
from moorage.common.units import human_bytes
from moorage.spec.patterns import is_of_the_system

READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
LONGEST_SECRET = 4096
KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


def expanded(path: str) -> Path:
    """A path with `~` expanded; the `~name` of a user who does not exist stays, as in a shell."""
    return Path(os.path.expanduser(path))


def read_whole(path: Path, most: int) -> bytes:
    """Content of a file of at most `most` bytes; follows links.

    Raises:
        Failure: `SOURCE_CORRUPT` when it is larger, not a regular file, or a system file.
        OSError: When it cannot be read.
    """
    with open_regular(path) as content:
        found = content.read(most + 1)
    if len(found) > most:
        raise _corrupt(path, f"is larger than {human_bytes(most)}")
    return found


def read_part(path: Path, start: int, stop: int) -> bytes:
    """Bytes of a file from one offset up to another or to its end; raises as `read_whole`."""
    with open_regular(path) as content:
        content.seek(start)
        return content.read(stop - start)


def read_json(path: Path, limits: JsonLimits = LIMITS) -> Any:
    """The value in a JSON file; raises as `read_whole`, and `SOURCE_CORRUPT` for invalid JSON."""
    content = read_whole(path, limits.size)
    try:
        return decode(content, limits)
    except JsonError as error:
        raise _corrupt(path, str(error)) from None


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file without ever blocking; raises as `read_whole`."""
    require_regular(path, path.stat())
    # The path may name another file by now, such as a FIFO, so open without blocking and recheck.
    with open(os.open(path, READING), "rb") as content:
        require_regular(path, os.fstat(content.fileno()))
        # A link must not lead to a system file; the store itself may be anywhere.
        real = os.path.realpath(path)
        if real != str(path.parent.resolve() / path.name) and is_of_the_system(real):
            raise _corrupt(path, f"is a link to {short(real)}, which is no model's")
        yield content


def require_regular(path: Path, found: os.stat_result) -> None:
    """Raise `SOURCE_CORRUPT` unless `found` describes a regular file."""
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise _corrupt(path, f"is {kind}, and no regular file")


def _corrupt(path: Path, why: str) -> Failure:
    return Failure(Cause.SOURCE_CORRUPT, f"{short(path.name)} {why}")


def read_small(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes without ever blocking.

    Checks the opened file, not the path, which may name another file by then.

    Raises:
        OSError: The file is missing, unreadable, too large, or not a regular file.
    """
    try:
        number = os.open(path, READING)
    except ValueError as error:  # a NUL byte in the path
        raise OSError(str(error)) from None
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(EINVAL, "is no plain file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(EFBIG, f"is larger than {human_bytes(most)}")
    return content


def read_private(path: Path) -> str | None:
    """Start of a file that is private to this user; None = it does not exist.

    Raises:
        Failure: `BAD_SETTING` when other users could have read or written it.
    """
    try:
        with open(os.open(path, READING | os.O_NOFOLLOW), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise unsafe(path, "is not a file")
            if facts.st_uid != os.geteuid():
                raise unsafe(path, f"belongs to the user with the number {facts.st_uid}")
            if facts.st_mode & 0o077:
                raise unsafe(path, f"is open to others (mode {stat.S_IMODE(facts.st_mode):04o})")
            return file.read(LONGEST_SECRET).decode("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unsafe(path, f"cannot be read: {error.strerror}") from None


def open_private(path: Path, mode: str) -> IO[Any]:
    """Open a file; if it is created, only this user can access it. Raises `OSError`."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def write_private(path: Path, text: str, *, over: bool) -> bool:
    """Write a file atomically; only this user can ever access it.

    Returns:
        Whether it was written; without `over`, an existing file stays.

    Raises:
        Failure: `BAD_SETTING` when its folder belongs to another user; `STORE_UNWRITABLE`.
    """
    try:
        provide_private_folder(path.parent)
        try:
            write_whole(path, f"{text}\n", over=over)
        except FileExistsError:
            return False
        return True
    except OSError as error:
        raise unwritten(path, error) from None


def write_whole(path: Path, text: str, *, mode: int = 0o600, over: bool = True) -> None:
    """Write a file atomically; raises `OSError`, without `over` also for an existing file."""
    # `mkstemp` makes the file private to this user.
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        if over:
            os.replace(draft, path)
        else:
            os.link(draft, path, follow_symlinks=False)
    finally:
        Path(draft).unlink(missing_ok=True)


def provide_private_folder(path: Path) -> None:
    """Create a folder that only this user can enter, or restrict an existing one.

    Raises:
        OSError: When it cannot be created.
        Failure: `BAD_SETTING` when it belongs to another user.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise unsafe(path, "is not a folder of this user")
    path.chmod(0o700)


def unsafe(path: Path, what: str) -> Failure:
    """The failure for a file that is not private to this user."""
    return Failure(
        Cause.BAD_SETTING,
        f"MOORAGE_HOME: {path} {what}, so it is no secret of this user",
        suggestion="Stop `moorage serve`, remove that file and start again: a new login is made."
        " Or use a MOORAGE_HOME of your own.",
    )
