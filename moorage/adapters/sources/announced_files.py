"""Checking that a file is what its source announced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from moorage.adapters.transfer.file_checks import File, mismatch
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
    if why := mismatch(str(path), file_record(file)):
        raise Failure(Cause.DOWNLOAD_CORRUPT, why)


def file_record(file: ModelFile) -> File:
    """A file as the programs on hosts know it."""
    return cast("File", file.model_dump(exclude={"target"}))


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


def require_distinct(files: Sequence[ModelFile]) -> None:
    """Raise `SOURCE_CORRUPT` when two files have one path, or one lies below another."""
    paths = [PurePosixPath(file.name) for file in files]
    folders = {folder for path in paths for folder in path.parents}
    if len(set(paths)) < len(paths) or not folders.isdisjoint(paths):
        raise Failure(Cause.SOURCE_CORRUPT, "two files have the same path", suggestion=ATTACK)


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
