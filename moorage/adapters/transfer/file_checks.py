"""Checks of the files in a store, for this machine and for hosts; standard library only."""

import contextlib
import errno
import json
import os
import shutil
from typing import Any

from moorage.adapters.transfer.checksum import File, mismatch, size_of

MANIFEST, INCOMPLETE = ".moorage.json", ".incomplete"
MARGIN = 1.05
"""Required free space, as a multiple of the bytes that are still missing."""

STAMPS = ".moorage.stamps.json"
"""File with the sizes and modification times that the model's files had when verified."""

OCCUPIED = {errno.EEXIST, errno.ENOTEMPTY}
"""Errors of a rename to a directory with content."""


def damaged_files(folder: str, files: list[File], *, thorough: bool = False) -> list[File]:
    """The files of a complete directory that have changed.

    A file whose size and time are unchanged since it was verified is read only if `thorough`.
    """
    known = {file["name"]: file for file in manifest_files(folder)}
    stamps = {} if thorough else read_json(os.path.join(folder, STAMPS))
    bad = []
    for file in files:
        path, name = os.path.join(folder, file["name"]), file["name"]
        believed = not thorough and stamps.get(name, stamp(path)) == stamp(path)
        expected: File = known.get(name, file) if known.get(name, {}).get("sha256") else file
        if size_of(path) != file["size"] or (not believed and mismatch(path, expected)):
            bad.append(file)
    return bad


def is_complete(folder: str, files: list[File]) -> bool:
    """Whether a directory was published, and is unchanged; its stamps spare the next reading."""
    if not os.path.exists(os.path.join(folder, MANIFEST)) or damaged_files(folder, files):
        return False
    if read_json(os.path.join(folder, STAMPS)) != _stamps(folder, files):
        with contextlib.suppress(OSError):
            _write_stamps(folder, files)
    return True


def manifest_files(folder: str) -> list[File]:
    """Files in a directory's manifest, with SHA-256 sums that the source did not announce."""
    listed = read_json(os.path.join(folder, MANIFEST)).get("files", [])
    return listed if isinstance(listed, list) else []


def publish(workspace: str, place: str, manifest: str, files: list[File]) -> None:
    """Rename a workspace, in which every file is verified, to the complete directory.

    If another host published the same files meanwhile, theirs stay: an engine may read them.
    """
    write(os.path.join(workspace, MANIFEST), manifest)
    _write_stamps(workspace, files)
    try:
        os.rename(workspace, place)
    except OSError as error:
        if error.errno not in OCCUPIED:
            raise
        if is_complete(place, files):
            shutil.rmtree(workspace, ignore_errors=True)
            return
        shutil.rmtree(place, ignore_errors=True)
        os.rename(workspace, place)


def stamp(path: str) -> list[int]:
    """Size and modification time of a file; empty if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def read_json(path: str) -> dict[str, Any]:
    """The JSON object in a file; empty if the file is missing or has no object."""
    try:
        with open(path, "rb") as content:
            found = json.load(content)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str) -> None:
    """Write a file and sync it to disk, so that it is complete before its directory is renamed."""
    with open(path, "w") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())


def _write_stamps(folder: str, files: list[File]) -> None:
    write(os.path.join(folder, STAMPS), json.dumps(_stamps(folder, files)))


def _stamps(folder: str, files: list[File]) -> dict[str, list[int]]:
    return {file["name"]: stamp(os.path.join(folder, file["name"])) for file in files}
