"""Checks of files against the sizes and checksums of their source; standard library only."""

import hashlib
import os
from collections.abc import Iterator
from typing import Any, TypedDict

BLOCK = 1 << 20


class File(TypedDict, total=False):
    """A file as its source announces it; the fields match `ModelFile`."""

    name: str
    size: int
    sha256: str
    git_oid: str
    md5: str
    part: int
    etag: str


class Checksum:
    """Checksum of a file, computed while it is downloaded, so that it is not read again.

    Attributes:
        size: Bytes added so far.
    """

    def __init__(self, file: File) -> None:
        self._name, self._announced = file["name"], announced_checksum(file)
        self._hash = _hash_of(file)
        # MD5 is too weak for later checks: the manifest gets a SHA-256 instead.
        lasts = file.get("sha256") or file.get("git_oid")
        self._own = None if lasts else hashlib.sha256()
        self.size = 0

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self.size += len(data)
        self.add(data)

    def add(self, data: bytes | memoryview) -> None:
        """Add bytes that `size` counts already."""
        if self._hash:
            self._hash.update(data)
        if self._own:
            self._own.update(data)

    @property
    def sha256(self) -> str:
        """SHA-256 if the source announced at most an MD5; otherwise empty."""
        return self._own.hexdigest() if self._own else ""

    def mismatch(self) -> str:
        """Difference from the announced checksum, in words; empty = none."""
        if not self._hash or (found := self._hash.hexdigest()) == self._announced:
            return ""
        announced = self._announced[:12]
        return f"{self._name} has checksum {found[:12]}..., announced was {announced}..."


class PartsMd5:
    """ETag of a file that was uploaded to S3 in parts of `part` bytes."""

    def __init__(self, part: int) -> None:
        self._part, self._left = part, part
        self._md5, self._sums = _md5(), list[bytes]()

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        view = memoryview(data)
        while view:
            piece = view[: self._left]
            self._md5.update(piece)
            self._left -= len(piece)
            view = view[len(piece) :]
            if not self._left:
                self._sums.append(self._md5.digest())
                self._md5, self._left = _md5(), self._part

    def hexdigest(self) -> str:
        """ETag of all bytes so far."""
        last = [self._md5.digest()] if self._left < self._part else []
        sums = [*self._sums, *last]
        return f"{_md5(b''.join(sums)).hexdigest()}-{len(sums)}"


def mismatch(path: str, file: File) -> str:
    """Difference from the announced size or checksum, in words; empty = none."""
    if (why := size_mismatch(path, file)) or not announced_checksum(file):
        return why
    checksum = Checksum(file)
    for block in blocks_of(path):
        checksum.update(block)
    return checksum.mismatch()


def size_mismatch(path: str, file: File) -> str:
    """Difference from the announced size, in words; empty = none."""
    size, announced = size_of(path), file["size"]
    if size == announced:
        return ""
    return f"{file['name']} has {size:,} bytes, announced were {announced:,}"


def announced_checksum(file: File) -> str:
    """Strongest checksum that the source announced; empty = none."""
    return file.get("sha256") or file.get("git_oid") or file.get("md5") or ""


def blocks_of(path: str, start: int = 0) -> Iterator[memoryview]:
    """Blocks of a file from an offset on; each block is valid until the next is read."""
    block = memoryview(bytearray(BLOCK))
    with open(path, "rb", buffering=0) as content:
        content.seek(start)
        while size := content.readinto(block):
            yield block[:size]


def sha256_of(path: str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def size_of(path: str | os.PathLike[str]) -> int:
    """Size of a file in bytes; -1 if it does not exist."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _hash_of(file: File) -> Any:
    """Hash object for the announced checksum; None = no checksum was announced."""
    if file.get("sha256"):
        return hashlib.sha256()
    if file.get("git_oid"):
        # Git hashes a file together with its type and size.
        return hashlib.sha1(b"blob %d\0" % file["size"], usedforsecurity=False)
    if not file.get("md5"):
        return None
    return PartsMd5(file["part"]) if file.get("part") else _md5()


def _md5(start: bytes = b"") -> Any:
    return hashlib.md5(start, usedforsecurity=False)
