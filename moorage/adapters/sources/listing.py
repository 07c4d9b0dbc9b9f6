"""The files of a directory, as far as a model may have them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from moorage.adapters.files.regular_files import require_regular
from moorage.adapters.sources.verify import MOST_FILES, require_name
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile
from moorage.spec.safe import is_of_the_system

DEEPEST = 32
"""Folders in each other."""


def list_files(root: Path) -> tuple[ModelFile, ...]:
    """List regular files and links to them, such as the hub client's own cache has.

    Hidden files and folders are left out.

    Raises:
        Failure: `SOURCE_CORRUPT` when there are too many, or one that no model has;
            `SOURCE_INCOMPLETE` for a link to a file of the system.
        OSError: When a folder or file cannot be read.
    """
    base = root.resolve()
    names = sorted(_names(root), key=lambda name: name.split("/"))
    return tuple(_file(root, base, name) for name in names)


def _names(root: Path) -> Iterator[str]:
    """Paths below the directory; what a link to a folder leads to is not its own."""
    waiting: list[tuple[str, int]] = [("", 1)]
    seen = 0
    while waiting:
        folder, depth = waiting.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_FILES:
                    raise _corrupt(f"there are more than {MOST_FILES:,} files in {root}")
                if entry.name.startswith("."):
                    continue
                name = require_name(f"{folder}/{entry.name}" if folder else entry.name)
                if not entry.is_dir(follow_symlinks=False):
                    if not entry.is_dir():
                        yield name
                elif depth == DEEPEST:
                    raise _corrupt(f"the folders in {root} are more than {DEEPEST} deep")
                else:
                    waiting.append((name, depth + 1))


def _file(root: Path, base: Path, name: str) -> ModelFile:
    path = root / name
    found = path.stat()
    require_regular(path, found)
    real = Path(os.path.realpath(path))
    outside = "" if real.is_relative_to(base) else str(real)
    if outside and is_of_the_system(outside):
        # It would be mounted into the engine's container.
        raise Failure(Cause.SOURCE_INCOMPLETE, f"{path} is a link to {real}, which is no model's")
    return ModelFile(name=name, size=found.st_size, target=require_name(outside) if outside else "")


def _corrupt(why: str) -> Failure:
    return Failure(
        Cause.SOURCE_CORRUPT, why, suggestion="Name the directory of one model, and nothing else."
    )
