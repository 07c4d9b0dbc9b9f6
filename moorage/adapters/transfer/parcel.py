"""A file of a local directory, packed as Docker takes it."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, ResolvedModel

PIECE = 1 << 20
BLOCK = tarfile.BLOCKSIZE


def parcel(model: ResolvedModel, file: ModelFile, target: str) -> Iterator[bytes]:
    """A tar of one file, in pieces; it is never held in memory.

    Args:
        model: What the file belongs to.
        file: The file.
        target: Its path below the directory that the archive is unpacked in.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file becomes shorter meanwhile.
    """
    path = Path(file.target or Path(model.path, file.name))
    entry = tarfile.TarInfo(target.lstrip("/"))
    entry.size = file.size
    yield entry.tobuf(tarfile.GNU_FORMAT)
    sent = 0
    with path.open("rb") as content:
        while piece := content.read(min(PIECE, file.size - sent)):
            sent += len(piece)
            yield piece
    if sent < file.size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"{path} became shorter while it was read")
    yield bytes(-file.size % BLOCK + 2 * BLOCK)
