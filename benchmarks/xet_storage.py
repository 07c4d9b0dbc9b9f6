"""Storage for requests of the hub's client with hf_xet: https://huggingface.co/docs/xet.

A file is split into chunks, and many chunks make a xorb. In this module all chunks have the same
size and are not compressed, and all xorbs of a file are concatenated in one file. The client does
not check the hashes of chunks, so they are arbitrary names.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

CHUNK = 65_536
CHUNKS = 1000
"""Chunks per xorb, whose limit is 64 MiB."""

XORB = CHUNK * CHUNKS
HEADER = 8
"""Bytes before each chunk: version, size, kind of compression, uncompressed size."""

STORED = 0


def pack(path: Path) -> None:
    """Write the xorbs of a file."""
    xorbs_of(path).parent.mkdir(exist_ok=True)
    with path.open("rb") as source, xorbs_of(path).open("wb") as target:
        while chunk := source.read(CHUNK):
            size = len(chunk).to_bytes(3, "little")
            target.write(bytes([0]) + size + bytes([STORED]) + size + chunk)


def xorbs_of(path: Path) -> Path:
    """The file with the xorbs of a file."""
    return path.parent.with_suffix(".xorbs") / path.name


def name_of(path: Path) -> str:
    """The hash of a file."""
    return _name(str(path))


def reconstruction(path: Path, first: int, end: int, url: str) -> dict[str, Any]:
    """The chunks for the bytes of a file between two offsets; `url` is the address of its xorbs."""
    size, terms, fetch_info = path.stat().st_size, [], {}
    for number in range(first // XORB, (end - 1) // XORB + 1):
        start, stop = number * XORB, min(size, (number + 1) * XORB)
        chunks = {
            "start": (max(first, start) - start) // CHUNK,
            "end": -(-(min(end, stop) - start) // CHUNK),
        }
        length = min(stop - start, chunks["end"] * CHUNK) - chunks["start"] * CHUNK
        at = number * CHUNKS * (CHUNK + HEADER) + chunks["start"] * (CHUNK + HEADER)
        last = at + length + HEADER * (chunks["end"] - chunks["start"]) - 1
        xorb = _name(f"{path}/{number}")
        terms.append({"hash": xorb, "unpacked_length": length, "range": chunks})
        fetch_info[xorb] = [{"range": chunks, "url": url, "url_range": {"start": at, "end": last}}]
    offset = first % CHUNK
    return {"offset_into_first_range": offset, "terms": terms, "fetch_info": fetch_info}


def _name(of: str) -> str:
    return hashlib.sha256(of.encode()).hexdigest()
