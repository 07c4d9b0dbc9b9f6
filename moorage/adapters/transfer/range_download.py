"""The resumable, verified download of a file; standard library only.

The sources run it here, the staging program runs it on hosts: each hands over what opens a range.
`hf_hub_download` and boto3's own transfer start a file again in the next process; this resumes it.
The file grows in order, so its size alone tells where; its checksum is computed meanwhile.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from threading import Event

from moorage.adapters.transfer.checksum import (
    Checksum,
    File,
    announced_checksum,
    blocks_of,
    size_of,
)
from moorage.adapters.transfer.prefetch import Connections, Prefetch
from moorage.adapters.transfer.range_answer import Answer, DownloadError, OpenRange, replaced_error


class Download:
    """The download of one file.

    Args:
        path: Where it grows, and stays when the connection breaks for good.
        open_range: Asks the server for a range.
        stopped: Set when the download is to end early.
        connections: Its own is one of them. Spare ones fetch what comes next; default = none are.
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
        connections: Connections | None = None,
        last: bool = True,
    ) -> None:
        self._file, self._path = file, path
        self._stopped, self._waits, self._last = stopped, waits, last
        self._connections = connections or Connections(1)
        self._ranges = Prefetch(open_range, file["size"], self._connections)
        self._etag, self._checksum = "", Checksum(file)

    def run(self) -> str:
        """Download what is missing, and verify the file.

        Returns:
            Its SHA-256 where the source announced no checksum that lasts; else empty.

        Raises:
            DownloadError: When no attempt is left, or none would help.
        """
        with self._connections.own(), closing(self._ranges):
            self._try()
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
        if why := self._checksum.mismatch():
            self._clear()
            # What was resumed may be of two contents: then all of it is fetched once more.
            raise DownloadError("download-corrupt", why, transient=resumed)

    def _sum_up(self) -> None:
        """Add to the checksum what is here from before."""
        for block in blocks_of(self._path, self._checksum.size):
            self._require_running()
            self._checksum.update(block)

    def _append(self) -> None:
        start = self._checksum.size
        with self._ranges.open(start) as answer:
            end = self._checked_end(answer, start)
            with open(self._path, "ab") as target:
                for block in answer.content(start):
                    self._require_running()
                    needed = block[: end - self._checksum.size]
                    target.write(needed)
                    target.flush()  # the process may end at any moment
                    self._checksum.update(needed)
                    if self._checksum.size >= end:
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
        if announced or announced_checksum(self._file):
            return  # a checksum tells more: servers of one network may call the same file otherwise
        if self._etag not in ("", etag):
            self._clear()
            raise self._error("source-incomplete", "was replaced meanwhile", transient=True)
        self._etag = etag

    def _clear(self) -> None:
        self._etag, self._checksum = "", Checksum(self._file)
        with open(self._path, "wb"):
            pass

    def _require_running(self) -> None:
        if self._stopped.is_set():
            detail = f"the download of {self._file['name']} was stopped"
            raise DownloadError("interrupted", detail)

    def _error(self, cause: str, why: str, *, transient: bool = False) -> DownloadError:
        return DownloadError(cause, f"{self._file['name']} {why}", transient=transient)
