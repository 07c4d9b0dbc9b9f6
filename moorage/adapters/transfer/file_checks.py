"""Checks of the files in a store, on this machine and on hosts; standard library only."""

import contextlib
import hashlib
import json
import os
import shutil
from io import BufferedReader
from typing import Any, TypedDict

MANIFEST = ".moorage.json"
BLOCK = 1 << 20
STAMPS = ".moorage.stamps.json"
"""Sizes and times that the files had when they were verified."""


class File(TypedDict, total=False):
    """A file as its source announces it; the fields are those of `ModelFile`."""

    name: str
    size: int
    sha256: str
    git_oid: str
    md5: str
    part: int
    etag: str


def mismatch(path: str, file: File) -> str:
    """How a file differs from its announcement in size or checksum; empty = not at all."""
    name, size, announced = file["name"], size_of(path), file["size"]
    if size != announced:
        return f"{name} has {size:,} bytes, announced were {announced:,}"
    checksum = file.get("sha256") or file.get("git_oid") or file.get("md5")
    if checksum and checksum != (found := _checksum(path, file)):
        return f"{name} has checksum {found[:12]}..., announced was {checksum[:12]}..."
    return ""


def _checksum(path: str, file: File) -> str:
    with open(path, "rb") as content:
        if file.get("sha256"):
            return sha256_of(content)
        if file.get("git_oid"):
            # Git hashes a small file together with its kind and size.
            blob = hashlib.sha1(b"blob %d\0" % file["size"], usedforsecurity=False)
            return hashlib.file_digest(content, lambda: blob).hexdigest()
        return md5_of(content, file.get("part", 0))


def sha256_of(content: BufferedReader) -> str:
    """The SHA-256 of the rest of a file."""
    return hashlib.file_digest(content, "sha256").hexdigest()


def md5_of(content: BufferedReader, part: int) -> str:
    """The ETag of a file that was sent to S3 in parts of so many bytes; 0 = it was sent whole."""
    if not part:
        return hashlib.file_digest(content, _md5).hexdigest()
    sums = []
    while piece := content.read(min(BLOCK, part)):
        whole, left = _md5(piece), part - len(piece)
        while piece := content.read(min(BLOCK, left)):
            whole.update(piece)
            left -= len(piece)
        sums.append(whole.digest())
    return f"{_md5(b''.join(sums)).hexdigest()}-{len(sums)}"


def _md5(start: bytes = b"") -> Any:
    return hashlib.md5(start, usedforsecurity=False)


def damaged_files(folder: str, files: list[File], *, thorough: bool = False) -> list[File]:
    """Those of the files of a complete directory that have changed.

    One of the size and time that it had when it was verified is read only in a thorough check.
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


def is_whole(folder: str, files: list[File]) -> bool:
    """Whether a complete directory is unchanged. New stamps spare the next reading."""
    if damaged_files(folder, files):
        return False
    if read_json(os.path.join(folder, STAMPS)) != _stamps(folder, files):
        with contextlib.suppress(OSError):
            write_stamps(folder, files)
    return True


def manifest_files(folder: str) -> list[File]:
    """The files in a directory's manifest: with checksums that the source did not announce."""
    listed = read_json(os.path.join(folder, MANIFEST)).get("files", [])
    return listed if isinstance(listed, list) else []


def publish(workspace: str, place: str, manifest: str, files: list[File]) -> None:
    """Turn a workspace, in which every file is verified, into the complete directory."""
    write(os.path.join(workspace, MANIFEST), manifest)
    write_stamps(workspace, files)
    shutil.rmtree(place, ignore_errors=True)
    os.rename(workspace, place)


def write_stamps(folder: str, files: list[File]) -> None:
    """Note that the files are verified as they are now."""
    write(os.path.join(folder, STAMPS), json.dumps(_stamps(folder, files)))


def stamp(path: str) -> list[int]:
    """Size and time of a file; empty when it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes of a file; -1 when it is not there."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def read_json(path: str) -> dict[str, Any]:
    """An object in a file; empty when it is not there, or is none."""
    try:
        with open(path, "rb") as content:
            found = json.load(content)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str) -> None:
    """Write a file that is on the disk when its directory gets its name."""
    with open(path, "w") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())


def _stamps(folder: str, files: list[File]) -> dict[str, list[int]]:
    return {file["name"]: stamp(os.path.join(folder, file["name"])) for file in files}
