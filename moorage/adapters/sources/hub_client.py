"""What the hub knows and sends: the listing of a commit, ranges of files, and whole files.

`hf_hub_download` is not used for the files: it deletes an unfinished one when the connection stays
cut, starts it anew in the next process, and asks the hub for what the listing already record.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from moorage.adapters.sources.hub_answers import first_byte, size_of_file
from moorage.adapters.sources.hub_http import HubHttp
from moorage.adapters.sources.refs import COMMIT
from moorage.adapters.sources.retrying import WAITS, grow, with_retries
from moorage.adapters.sources.verify import CHECKSUM, MOST_FILES, is_size, require_inside
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile

PIECE = 4 * 1024**3
"""Bytes of one request: the hub's network sends files beyond 50 GB only in pieces."""


class HubClient:
    """One repository on the hub, retried while the hub cannot be reached.

    Args:
        http: Sends the requests.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
    """

    def __init__(self, http: HubHttp, *, waits: tuple[float, ...] = WAITS) -> None:
        self.repo = http.repo
        self._http = http
        self._waits = waits

    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """Ask for the files of a revision; empty = the default branch.

        Returns:
            The commit that the revision stands for now, and its files.

        Raises:
            Failure: As `failure_of` says; `SOURCE_INCOMPLETE` when a file's name leads elsewhere,
                `SOURCE_CORRUPT` when one cannot be printed, or there are too many.
        """
        listing = with_retries(lambda: self._http.listing(revision), self._waits)
        commit, entries = listing.get("sha"), listing.get("siblings")
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise self._http.not_a_hub("it names no commit")
        if not isinstance(entries, list):
            raise self._http.not_a_hub("it lists no files")
        if len(entries) > MOST_FILES:
            detail = f"there are more than {MOST_FILES:,} files in {self.repo}"
            raise Failure(Cause.SOURCE_CORRUPT, detail)
        files = tuple(self._file(entry) for entry in entries)
        if len({file.name for file in files}) < len(files):
            raise self._http.not_a_hub("it lists a file twice")
        return commit, files

    def read(self, commit: str, name: str, start: int, stop: int) -> bytes:
        """Read a file from one offset up to another, and no more even if the server sends all.

        Raises:
            Failure: As `failure_of` says; `DOWNLOAD_CORRUPT` when the file is too short.
        """
        return with_retries(lambda: self._read(commit, name, start, stop), self._waits)

    def fetch(self, commit: str, file: ModelFile, target: Path, stopped: Event) -> None:
        """Download a file, or what is missing of it.

        Args:
            commit: Full commit id.
            file: The file.
            target: Where it grows, and stays when the connection breaks for good.
            stopped: Set when the download is to end early.

        Raises:
            Failure: As `failure_of` says; `DOWNLOAD_CORRUPT` when the server's file has another
                size, `INTERRUPTED` when stopped.
        """
        grow(
            lambda: self._append(commit, file, target, stopped), file, target, stopped, self._waits
        )

    def _file(self, entry: Any) -> ModelFile:
        """A file as it is listed; what no hub would say of one is refused."""
        if not isinstance(entry, dict):
            raise self._http.not_a_hub("it lists what is no file")
        name, large = require_inside(entry.get("rfilename")), entry.get("lfs")
        record = large if isinstance(large, dict) else entry
        size = record.get("size")
        if not is_size(size):
            raise self._http.not_a_hub(f"it does not tell the size of {name}")
        if large:
            return ModelFile(name=name, size=size, sha256=self._sum(name, record.get("sha256")))
        return ModelFile(name=name, size=size, git_oid=self._sum(name, record.get("blobId")))

    def _sum(self, name: str, announced: Any) -> str:
        if announced and not (isinstance(announced, str) and CHECKSUM.fullmatch(announced)):
            raise self._http.not_a_hub(f"it gives no checksum of {name}")
        return announced or ""

    def _read(self, commit: str, name: str, start: int, stop: int) -> bytes:
        found = bytearray()
        with self._http.file_range(commit, name, start, stop) as response:
            begin = first_byte(response, start)
            for chunk in response.iter_bytes():
                found += chunk
                if begin + len(found) >= stop:
                    return bytes(found[start - begin : stop - begin])
        raise Failure(Cause.DOWNLOAD_CORRUPT, f"{name} is shorter than the hub announced")

    def _append(self, commit: str, file: ModelFile, target: Path, stopped: Event) -> None:
        have = target.stat().st_size
        stop = min(have + PIECE, file.size)
        with (
            self._http.file_range(commit, file.name, have, stop) as response,
            target.open("r+b") as out,
        ):
            if size_of_file(response) not in (None, file.size):
                found, announced = f"{size_of_file(response):,}", f"{file.size:,}"
                detail = f"{file.name} has {found} bytes, announced were {announced}"
                raise Failure(Cause.DOWNLOAD_CORRUPT, detail)
            out.seek(first_byte(response, have))  # to the start if all of it comes
            for chunk in response.iter_bytes():
                if stopped.is_set():
                    raise Failure(Cause.INTERRUPTED, f"the download of {file.name} was stopped")
                out.write(chunk[: file.size - out.tell()])
                if out.tell() >= file.size:
                    break  # whatever else it sends
        if target.stat().st_size <= have:
            raise Failure(Cause.HUB_UNAVAILABLE, f"the hub sends no more of {file.name}")
