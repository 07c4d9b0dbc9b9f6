"""Checking that a file is what its source announced."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePosixPath

from moorage.adapters.transfer.file_checks import md5_of
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.models.source import ModelFile

MOST_FILES = 10_000
"""A directory with more is a mistake, such as `/`, or an attack: models have some hundreds."""

LARGEST_FILE = 1 << 60
LONGEST_NAME = 1000
CHECKSUM = re.compile(r"[0-9a-f]{32,64}")
ATTACK = "Do not use this repository: such a name is an attack or a damaged listing."


def verify(path: Path, file: ModelFile) -> None:
    """Compare a file with its announcement: the size, and the checksum where there is one.

    Raises:
        Failure: `DOWNLOAD_CORRUPT` when they differ.
    """
    size = path.stat().st_size
    if size != file.size:
        raise Failure(
            Cause.DOWNLOAD_CORRUPT, f"{file.name} has {size:,} bytes, announced were {file.size:,}"
        )
    announced = file.checksum
    if announced and announced != (found := _checksum(path, file)):
        raise Failure(
            Cause.DOWNLOAD_CORRUPT,
            f"{file.name} has checksum {found[:12]}..., announced was {announced[:12]}...",
        )


def is_size(size: object) -> bool:
    """Whether a listing says a number of bytes that a file may have."""
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= LARGEST_FILE


def require_inside(name: object) -> str:
    """Let a file name pass that stays inside its model's directory.

    Raises:
        Failure: `SOURCE_INCOMPLETE` for one that leads out of it, `SOURCE_CORRUPT` for one that
            cannot be printed or is no text.
    """
    if not isinstance(name, str):
        raise Failure(Cause.SOURCE_CORRUPT, "a file name is no text", suggestion=ATTACK)
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"the file name '{short(name)}' leads out of the model's directory",
            suggestion=ATTACK,
        )
    return require_name(name)


def require_name(name: str) -> str:
    """Let a file name pass that can be printed, stored and sent: it is text, on one line.

    Raises:
        Failure: `SOURCE_CORRUPT` for another one.
    """
    if len(name) > LONGEST_NAME:
        raise Failure(Cause.SOURCE_CORRUPT, f"the file name '{short(name)}' is too long")
    if not name.isprintable():
        detail = f"the file name '{short(name)}' is not UTF-8, or has control characters"
        raise Failure(Cause.SOURCE_CORRUPT, detail, suggestion=f"Rename it. {ATTACK}")
    return name


def _checksum(path: Path, file: ModelFile) -> str:
    with path.open("rb") as content:
        if file.sha256:
            return hashlib.file_digest(content, "sha256").hexdigest()
        if file.md5 and not file.git_oid:
            return md5_of(content, file.part)
        # Git hashes a small file together with its kind and size.
        blob = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
        return hashlib.file_digest(content, lambda: blob).hexdigest()
