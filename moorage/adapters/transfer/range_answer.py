"""A server's answer to a request for a range of a file; standard library only."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event

from moorage.adapters.transfer.checksum import File

CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
LENGTH = re.compile(r"[0-9]{1,18}")


class DownloadError(Exception):
    """A download failed, with a value of `Cause` and a detail.

    If the error is transient, a retry may succeed.
    """

    def __init__(self, cause: str, detail: str, *, transient: bool = False) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.transient = cause, detail, transient


@dataclass(frozen=True)
class Answer:
    """A server's answer to a request for a range: the range, or the whole file.

    Attributes:
        status: HTTP status; 206 = the range.
        headers: Headers by lower-case name.
        blocks: Gives the content as it arrives, up to the end of a buffer if it is given one. A
            `memoryview` is the next part of that buffer.
        stop: End of a range that was fetched ahead, where a longer answer is cut off; None = it was
            not. Its blocks are parts of the buffer of its piece.
    """

    status: int
    headers: Mapping[str, str]
    blocks: Callable[[memoryview | None], Iterator[bytes | memoryview]]
    stop: int | None = None

    def bounds(self, start: int) -> tuple[int, int | None, int | None]:
        """Offset of the first byte, offset after the last byte, and size of the file, if known.

        Raises:
            DownloadError: The range does not begin at `start`.
        """
        if self.status != 206:
            compressed = self.headers.get("content-encoding", "identity") != "identity"
            length = LENGTH.fullmatch(self.headers.get("content-length", ""))
            size = int(length[0]) if length and not compressed else None
            return 0, size, size
        match = CONTENT_RANGE.match(self.headers.get("content-range", ""))
        if not match or int(match[1]) != start or int(match[2]) < start:
            detail = f"requested bytes from {start:,}, got {match[0] if match else 'others'}"
            raise DownloadError("download-corrupt", detail, transient=True)
        end, whole = int(match[2]) + 1, None if match[3] == "*" else int(match[3])
        return start, min(end, self.stop or end), whole

    def content(self, start: int) -> Iterator[bytes | memoryview]:
        """Bytes from an offset on; of a whole file, blocks before the offset come as empty."""
        skipped = start - self.bounds(start)[0]
        for block in self.blocks(None):
            yield block[skipped:]
            skipped = max(0, skipped - len(block))


OpenRange = Callable[[int, int], AbstractContextManager[Answer]]
"""Requests the bytes from one offset up to another. Raises a transient `DownloadError` if a retry
may succeed."""


def replaced_error(file: File) -> DownloadError:
    """The error for a file whose announced content was replaced at the source."""
    detail = f"{file['name']} was replaced meanwhile: deploy again, it is new"
    return DownloadError("source-incomplete", detail)


def read_range(open_range: OpenRange, name: str, start: int, stop: int, stopped: Event) -> bytes:
    """Read a file from one offset up to another, even if the server sends the whole file.

    Raises:
        DownloadError: `download-corrupt` when the file is too short, `interrupted` when stopped.
    """
    found = bytearray()
    with open_range(start, stop) as answer:
        for block in answer.content(start):
            if stopped.is_set():
                raise DownloadError("interrupted", f"reading {name} was stopped")
            found += block
            if len(found) >= stop - start:
                return bytes(found[: stop - start])
    raise DownloadError("download-corrupt", f"{name} is shorter than was announced")
