"""Checksums of files that grow: whatever the blocks, they are those of the whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from moorage.adapters.transfer.checksum import Checksum, File, mismatch
from tests.hub.tiny import pattern

DATA = pattern(25_000)
SHA256 = hashlib.sha256(DATA).hexdigest()
GIT = hashlib.sha1(b"blob 25000\0" + DATA).hexdigest()
MD5 = hashlib.md5(DATA).hexdigest()


def parts(size: int) -> str:
    sums = [hashlib.md5(DATA[start : start + size]).digest() for start in range(0, len(DATA), size)]
    return f"{hashlib.md5(b''.join(sums)).hexdigest()}-{len(sums)}"


ANNOUNCED: dict[str, tuple[File, str]] = {
    "SHA-256": ({"sha256": SHA256}, ""),
    "Git's": ({"git_oid": GIT}, ""),
    "MD5": ({"md5": MD5}, SHA256),
    "MD5 of even parts": ({"md5": parts(5000), "part": 5000}, SHA256),
    "MD5 of uneven parts": ({"md5": parts(9000), "part": 9000}, SHA256),
    "none": ({}, SHA256),
}
"""Fields of a file, and the checksum that is computed since the announced one does not last."""


@pytest.mark.parametrize("block", [1000, 7001, len(DATA)])
@pytest.mark.parametrize(("fields", "own"), ANNOUNCED.values(), ids=ANNOUNCED)
def test_blocks_have_the_checksum_of_the_whole(
    fields: File, own: str, block: int, tmp_path: Path
) -> None:
    file: File = {"name": "a", "size": len(DATA), **fields}
    checksum = Checksum(file)
    for start in range(0, len(DATA), block):
        checksum.update(DATA[start : start + block])
    assert (checksum.mismatch(), checksum.sha256, checksum.size) == ("", own, len(DATA))
    (tmp_path / "a").write_bytes(DATA)
    assert mismatch(str(tmp_path / "a"), file) == ""


@pytest.mark.parametrize(("fields", "_"), ANNOUNCED.values(), ids=ANNOUNCED)
def test_another_content_is_noticed_where_a_checksum_was_announced(fields: File, _: str) -> None:
    checksum = Checksum({"name": "a", "size": len(DATA), **fields})
    checksum.update(DATA[::-1])
    assert bool(checksum.mismatch()) == bool(fields)
