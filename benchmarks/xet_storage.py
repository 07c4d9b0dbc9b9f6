"""What the hub's client asks for with hf_xet, as https://huggingface.co/docs/xet describes it.

A file is split into chunks, and many chunks make a xorb. Here chunks are of one size and not
compressed, and all xorbs of a file lie one after the other in one file. The client does not check
the hashes of chunks, so they are just names.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

CHUNK = 65_536
CHUNKS = 1000
"""Chunks of a xorb, which has 64 MiB at most."""

XORB = CHUNK * CHUNKS
HEADER = 8
"""Bytes before each chunk: version, size, kind of compression, size without it."""

STORED = 0


def pack(path: Path) -> None:
    """Write the xorbs of a file."""
    xorbs_of(path).parent.mkdir(exist_ok=True)
    with path.open("rb") as source, xorbs_of(path).open("wb") as target:
        while chunk := source.read(CHUNK):
            size = len(chunk).to_bytes(3, "little")
            target.write(bytes([0]) + size + bytes([STORED]) + size + chunk)


def xorbs_of(path: Path) -> Path:
    """Where the xorbs of a file are."""
    return path.parent.with_suffix(".xorbs") / path.name


def name_of(path: Path) -> str:
    """The hash of a file."""
    return _name(str(path))


def reconstruction(path: Path, first: int, end: int, url: str) -> dict[str, Any]:
    """Which chunks make the bytes of a file from one offset up to another; `url` has its xorbs."""
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
