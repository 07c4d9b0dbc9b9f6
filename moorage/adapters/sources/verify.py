"""Checking that a file is what its source announced."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from moorage.adapters.staging.checks import md5_of
from moorage.failures import Cause, Failure
from moorage.models.source import ModelFile


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


def require_inside(name: str) -> str:
    """Let a file name pass that stays inside its model's directory.

    Raises:
        Failure: `SOURCE_INCOMPLETE` for one that leads out of it.
    """
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"the file name {name!r} leads out of the model's directory",
            suggestion="Do not use this repository: such a name is an attack or a damaged listing.",
        )
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
