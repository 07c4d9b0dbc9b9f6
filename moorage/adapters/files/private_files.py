"""Small files that this user alone may read and write: logins."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from moorage.common.failures import Cause, Failure

LONGEST = 4096


def read_private(path: Path) -> str | None:
    """The content of a file of this user alone; None = it is not there.

    Raises:
        Failure: `BAD_SETTING` when others could have read or written it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise unsafe(path, "is not a file")
            if facts.st_uid != os.geteuid():
                raise unsafe(path, f"belongs to the user with the number {facts.st_uid}")
            if facts.st_mode & 0o077:
                raise unsafe(path, f"is open to others (mode {stat.S_IMODE(facts.st_mode):04o})")
            return file.read(LONGEST).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unsafe(path, f"cannot be read: {error.strerror}") from None


def write_private(path: Path, text: str, *, over: bool) -> bool:
    """Write a file that is whole, and this user's alone, from its first moment.

    Returns:
        Whether it was written; without `over`, whoever was quicker wins.

    Raises:
        Failure: `BAD_SETTING` when its folder is somebody else's; `STORE_UNWRITABLE`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = path.parent.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            raise unsafe(path.parent, "is not a folder of this user")
        path.parent.chmod(0o700)
        # Made for this user alone.
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{text}\n")
        if over:
            os.replace(draft, path)
            return True
        try:
            os.link(draft, path, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            os.unlink(draft)
        return True
    except OSError as error:
        raise Failure(Cause.STORE_UNWRITABLE, f"{path}: {error.strerror}") from None


def unsafe(path: Path, what: str) -> Failure:
    """What to say of a file that is no secret of this user."""
    return Failure(
        Cause.BAD_SETTING,
        f"MOORAGE_HOME: {path} {what}, so it is no secret of this user",
        suggestion="Stop `moorage serve`, remove that file and start again: a new login is made."
        " Or use a MOORAGE_HOME of your own.",
    )
