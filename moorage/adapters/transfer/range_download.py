"""The resumable, verified download of a file; standard library only.

The sources run it here, the staging program runs it on hosts: each hands over what opens a range.
`hf_hub_download` and boto3's own transfer start a file anew in the next process; this resumes it.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event

from moorage.adapters.transfer.file_checks import File, mismatch, size_of

PIECE = 4 * 1024**3
"""Bytes of one request: the hub's network sends files beyond 50 GB only in pieces."""

CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
LENGTH = re.compile(r"[0-9]{1,18}")


class DownloadError(Exception):
    """Why something is not downloaded: a value of `Cause`, and what was found.

    Where it is transient, another attempt may succeed.
    """

    def __init__(self, cause: str, detail: str, *, transient: bool = False) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.transient = cause, detail, transient


@dataclass(frozen=True)
class Answer:
    """A server's answer to a request for a range: the range, or the whole file.

    Attributes:
        status: HTTP status; 206 = the range.
        headers: Found by name in lower case.
        blocks: The content, as it arrives.
    """

    status: int
    headers: Mapping[str, str]
    blocks: Iterator[bytes]

    def bounds(self, start: int) -> tuple[int, int | None, int | None]:
        """Offsets of the first byte and after the last one, and the file's size, where it says so.

        Raises:
            DownloadError: It is a range that begins elsewhere than at `start`.
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
        return start, int(match[2]) + 1, None if match[3] == "*" else int(match[3])

    def content(self, start: int) -> Iterator[bytes]:
        """The bytes from an offset on. Blocks before it, of an answer that is all, are empty."""
        skipped = start - self.bounds(start)[0]
        for block in self.blocks:
            yield block[skipped:]
            skipped = max(0, skipped - len(block))


OpenRange = Callable[[int, int], AbstractContextManager[Answer]]
"""Requests the bytes from one offset up to another. It raises a transient `DownloadError` where a
further attempt may succeed."""


class Download:
    """The download of one file.

    Args:
        path: Where it grows, and stays when the connection breaks for good.
        open_range: Asks the server for a range.
        stopped: Set when the download is to end early.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
        last: Whether no other server can go on with it. Then bytes beyond the most that ever were
            here renew the attempts, and a server whose file has another size is not used.
    """

    def __init__(
        self,
        file: File,
        path: str,
        open_range: OpenRange,
        stopped: Event,
        *,
        waits: Sequence[float],
        last: bool = True,
    ) -> None:
        self._file, self._path, self._open_range = file, path, open_range
        self._stopped, self._waits, self._last = stopped, waits, last
        self._etag = ""

    def run(self) -> None:
        """Download what is missing, and verify the file.

        Raises:
            DownloadError: When no attempt is left, or none would help.
        """
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        if not 0 <= size_of(self._path) <= self._file["size"]:
            self._clear()
        waits, most = iter(self._waits), size_of(self._path)
        while True:
            try:
                return self._attempt()
            except DownloadError as error:
                have = size_of(self._path)
                if have > most and self._last:
                    waits = iter(self._waits)
                most = max(most, have)
                wait = next(waits, None)
                if not error.transient or wait is None:
                    raise
            if self._stopped.wait(wait):
                raise self._interrupted()

    def _attempt(self) -> None:
        resumed = size_of(self._path) > 0
        while (have := size_of(self._path)) < self._file["size"]:
            self._append(have)
        if why := mismatch(self._path, self._file):
            self._clear()
            # What was resumed may be of two contents: then all of it is fetched once more.
            raise DownloadError("download-corrupt", why, transient=resumed)

    def _append(self, have: int) -> None:
        size = self._file["size"]
        with self._open_range(have, min(have + PIECE, size)) as answer:
            end = self._checked_end(answer, have)
            with open(self._path, "ab") as target:
                for block in answer.content(have):
                    if self._stopped.is_set():
                        raise self._interrupted()
                    have += target.write(block[: end - have])
                    target.flush()  # the process may end at any moment
                    if have >= end:
                        return  # whatever else it sends
        raise self._error("hub-unavailable", "is cut short by the server", transient=True)

    def _checked_end(self, answer: Answer, start: int) -> int:
        """The offset up to which the answer is read."""
        _, end, whole = answer.bounds(start)
        size = self._file["size"]
        if whole not in (None, size) and (self._last or whole <= start):
            raise self._error("download-corrupt", f"has {whole:,} bytes, announced were {size:,}")
        self._require_same_content(answer.headers.get("etag", ""))
        return min(end or size, size)

    def _require_same_content(self, etag: str) -> None:
        announced, name = self._file.get("etag"), etag.strip('"')
        if announced and etag.startswith('"') and name != announced:
            raise replaced_error(self._file)
        if announced or any(self._file.get(kind) for kind in ("sha256", "git_oid", "md5")):
            return  # a checksum tells more: servers of one network may call the same file otherwise
        if self._etag not in ("", etag):
            self._clear()
            raise self._error("source-incomplete", "was replaced meanwhile", transient=True)
        self._etag = etag

    def _clear(self) -> None:
        self._etag = ""
        with open(self._path, "wb"):
            pass

    def _interrupted(self) -> DownloadError:
        return DownloadError("interrupted", f"the download of {self._file['name']} was stopped")

    def _error(self, cause: str, why: str, *, transient: bool = False) -> DownloadError:
        return DownloadError(cause, f"{self._file['name']} {why}", transient=transient)


def replaced_error(file: File) -> DownloadError:
    """The content that was announced is no longer there."""
    detail = f"{file['name']} was replaced meanwhile: deploy again, it is new"
    return DownloadError("source-incomplete", detail)


def read_range(open_range: OpenRange, name: str, start: int, stop: int, stopped: Event) -> bytes:
    """Read a file from one offset up to another, and no more even if the server sends all.

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
