"""Resumable, verified download of a file; standard library only.

The sources run it on this machine, the staging program on hosts; each passes its own `open_range`.
`hf_hub_download` and boto3's own transfer restart a file in the next process; this download resumes
it. The file grows in order, so its size tells where to resume; its checksum is computed meanwhile.
"""

import os
from collections.abc import Callable, Sequence
from threading import Event

from moorage.adapters.transfer.checksum import (
    File,
    announced_checksum,
    blocks_of,
    size_mismatch,
    size_of,
)
from moorage.adapters.transfer.overlapped_checksum import OverlappedChecksum
from moorage.adapters.transfer.prefetch import Connections, Prefetch
from moorage.adapters.transfer.range_answer import Answer, DownloadError, OpenRange, replaced_error


class Download:
    """The download of one file.

    Args:
        path: The file to append to; it stays if the download fails.
        open_range: Requests a range from the server.
        stopped: Set to stop the download early.
        connections: Shared connections, its own included; spare ones prefetch. Default = no spare.
        waits: Seconds to wait before each retry; empty = no retry.
        last: Whether no other server is left to continue. If so, the retries start over whenever
            the file has grown beyond its former size, and a server with another size is refused.
    """

    def __init__(
        self,
        file: File,
        path: str,
        open_range: OpenRange,
        stopped: Event,
        *,
        waits: Sequence[float],
        connections: Connections | None = None,
        last: bool = True,
    ) -> None:
        self._file, self._path = file, path
        self._stopped, self._waits, self._last = stopped, waits, last
        self._connections = connections or Connections(1)
        self._etag, self._checksum = "", OverlappedChecksum(file)
        self._ranges = Prefetch(open_range, file["size"], self._connections, self._after)

    def run(self) -> str:
        """Download the missing bytes, and verify the file.

        Returns:
            SHA-256 of the file if the source announced at most an MD5; otherwise empty.

        Raises:
            DownloadError: When no retry is left, or a retry cannot help.
        """
        with self._connections.own():
            try:
                self._try()
            finally:
                self._ranges.close()
                self._checksum.close()
        return self._checksum.sha256

    def _try(self) -> None:
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
            self._stopped.wait(wait)
            self._require_running()

    def _attempt(self) -> None:
        resumed = size_of(self._path) > 0
        if resumed:
            self._sum_up()
        while self._checksum.size < self._file["size"]:
            self._append()
        # The checksum is of the bytes that arrived: another program may have written to the file.
        if why := self._checksum.mismatch() or size_mismatch(self._path, self._file):
            self._clear()
            # A resumed file may mix two contents, so download it once more from the start.
            raise DownloadError("download-corrupt", why, transient=resumed)

    def _sum_up(self) -> None:
        """Add the bytes from earlier attempts to the checksum."""
        for block in blocks_of(self._path, self._checksum.size):
            self._require_running()
            self._checksum.update(block)

    def _after(self, call: Callable[[], None]) -> None:
        self._checksum.after(call)

    def _append(self) -> None:
        start = self._checksum.size
        with self._ranges.open(start) as answer:
            end = self._checked_end(answer, start)
            is_ahead = answer.stop is not None
            add = self._checksum.update_later if is_ahead else self._checksum.update
            with open(self._path, "ab") as target:
                for block in answer.content(start):
                    self._require_running()
                    needed = block[: end - self._checksum.size]
                    target.write(needed)
                    target.flush()  # the process may be killed at any moment
                    add(needed)
                    if self._checksum.size >= end:
                        return  # ignore any further bytes
        raise self._error("hub-unavailable", "is cut short by the server", transient=True)

    def _checked_end(self, answer: Answer, start: int) -> int:
        """Offset up to which to read the answer."""
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
        if announced or announced_checksum(self._file):
            return  # a checksum is better: servers of one network may differ in their ETags
        if self._etag not in ("", etag):
            self._clear()
            raise self._error("source-incomplete", "was replaced meanwhile", transient=True)
        self._etag = etag

    def _clear(self) -> None:
        self._checksum.close()
        self._etag, self._checksum = "", OverlappedChecksum(self._file)
        with open(self._path, "wb"):
            pass

    def _require_running(self) -> None:
        if self._stopped.is_set():
            detail = f"the download of {self._file['name']} was stopped"
            raise DownloadError("interrupted", detail)

    def _error(self, cause: str, why: str, *, transient: bool = False) -> DownloadError:
        return DownloadError(cause, f"{self._file['name']} {why}", transient=transient)
