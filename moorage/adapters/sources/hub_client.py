"""Client of a hub: the listing of a commit, and ranges of its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moorage.adapters.sources.announced_files import CHECKSUM, MOST_FILES, is_size, require_inside
from moorage.adapters.sources.hub_http import HubHttp
from moorage.adapters.sources.remote_client import (
    WAITS,
    RemoteClient,
    retryable_failures,
    with_retries,
)
from moorage.adapters.sources.store import COMMIT
from moorage.adapters.transfer.range_download import Answer
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile


class HubClient(RemoteClient):
    """One repository on the hub, retried while the hub cannot be reached.

    Args:
        http: Sends the requests.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
    """

    def __init__(self, http: HubHttp, *, waits: tuple[float, ...] = WAITS) -> None:
        super().__init__(http.repo, waits)
        self._http = http

    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """The commit that a revision stands for now, and its files; empty = the default branch.

        Raises:
            Failure: As `failure_of` says; `SOURCE_INCOMPLETE` when a file's name leads elsewhere,
                `SOURCE_CORRUPT` when one cannot be printed, or there are too many.
        """
        listing = with_retries(lambda: self._listing(revision), self._waits)
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

    @contextmanager
    def open_range(self, commit: str, file: ModelFile, start: int, stop: int) -> Iterator[Answer]:
        """Ask for a range; it may be repeated while the hub cannot be reached."""
        with (
            retryable_failures(),
            self._http.file_range(commit, file.name, start, stop) as response,
        ):
            yield Answer(response.status_code, response.headers, response.iter_bytes())

    @retryable_failures()
    def _listing(self, revision: str) -> dict[str, Any]:
        return self._http.listing(revision)

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
