"""What clients of remote sources share: retried requests, parts of files, resumed downloads."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from moorage.adapters.sources.announced_files import file_record
from moorage.adapters.transfer.range_download import Answer, Download, DownloadError, read_range
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, ResolvedModel

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before each further attempt."""

T = TypeVar("T")


class RemoteClient(ABC):
    """Client of one place: a repository of a hub, or what is below a prefix of a bucket.

    Args:
        repo: The place, as messages name it.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
    """

    def __init__(self, repo: str, waits: tuple[float, ...]) -> None:
        self.repo, self._waits = repo, waits

    @abstractmethod
    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """The commit that a revision stands for now, and its files; empty = the default one."""

    @abstractmethod
    def open_range(
        self, commit: str, file: ModelFile, start: int, stop: int
    ) -> AbstractContextManager[Answer]:
        """Ask for a file from one offset up to another, and read the answer inside the block.

        Raises:
            Failure: The cause names the refusal.
            DownloadError: The request may be repeated.
        """

    @abstractmethod
    def mirror(self, model: ResolvedModel, seconds: float) -> dict[str, Any]:
        """Addresses for the staging program on hosts, valid for as long as a download may take."""

    def read(self, commit: str, file: ModelFile, stopped: Event, start: int, stop: int) -> bytes:
        """A file from one offset up to another.

        Raises:
            Failure: As `open_range`; `DOWNLOAD_CORRUPT` when the file is too short, `INTERRUPTED`
                when stopped.
        """
        open_range = partial(self.open_range, commit, file)
        attempt = partial(read_range, open_range, file.name, start, stop, stopped)
        return with_retries(attempt, self._waits)

    def fetch(self, commit: str, file: ModelFile, target: Path, stopped: Event) -> None:
        """Download a file, or what is missing of it, and verify it.

        Args:
            commit: Full commit id.
            file: The file.
            target: Where it grows, and stays when the connection breaks for good.
            stopped: Set when the download is to end early.

        Raises:
            Failure: As `open_range`; `DOWNLOAD_CORRUPT` when it is not what was announced,
                `INTERRUPTED` when stopped.
        """
        open_range = partial(self.open_range, commit, file)
        record = file_record(file)
        with _failures():
            Download(record, str(target), open_range, stopped, waits=self._waits).run()


def with_retries(attempt: Callable[[], T], waits: tuple[float, ...]) -> T:
    """Repeat an attempt, after these seconds, while it ends with a transient `DownloadError`."""
    with _failures():
        for wait in waits:
            try:
                return attempt()
            except DownloadError as error:
                if not error.transient:
                    raise
            time.sleep(wait)
        return attempt()


@contextmanager
def retryable_failures() -> Iterator[None]:
    """Mark what ends because the source cannot be reached: it may be repeated."""
    try:
        yield
    except Failure as failure:
        if failure.cause is not Cause.HUB_UNAVAILABLE:
            raise
        raise DownloadError(failure.cause.value, failure.detail, transient=True) from failure


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except DownloadError as error:
        raise Failure(Cause.parse(error.cause), error.detail) from None
