"""Models at remote sources: pinned to a commit, and downloaded into the model store."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from moorage.adapters.sources.describe import (
    HeaderBudget,
    describe,
    keep_indexed,
    weigh,
    weigh_here,
)
from moorage.adapters.sources.store import (
    COMMIT,
    Manifest,
    ModelStore,
    file_record,
    require_distinct,
)
from moorage.adapters.system.file_locks import hold
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.system.parallel import Tick, deadline, run_all
from moorage.adapters.transfer.prefetch import Connections
from moorage.adapters.transfer.range_answer import Answer, DownloadError, read_range
from moorage.adapters.transfer.range_download import Download
from moorage.common.failures import Cause, Failure
from moorage.models.assets import Asset
from moorage.models.files import MODEL, Layout, is_metadata, is_weight
from moorage.models.source import ModelFile, ResolvedModel
from moorage.models.weights import FileWeights, join_headers, summarize

METADATA_SECONDS = 300.0
"""Limit for the small files, with the wait for another process that reads them."""

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before each further attempt."""

T = TypeVar("T")


class RemoteClient(ABC):
    """Client of one place: a repository of a hub, or a prefix of a bucket.

    Args:
        repo: Name of the place, also in messages.
        waits: Seconds to wait before each further attempt; empty = only one attempt.
    """

    def __init__(self, repo: str, waits: tuple[float, ...]) -> None:
        self.repo, self._waits = repo, waits

    @abstractmethod
    def list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """The current commit of a revision, and its files; empty = the default revision."""

    @abstractmethod
    def open_range(
        self, commit: str, file: ModelFile, start: int, stop: int
    ) -> AbstractContextManager[Answer]:
        """Request the bytes `start` to `stop` of a file; read the answer inside the block.

        Raises:
            Failure: The source refuses; the cause names the reason.
            DownloadError: The request may be retried.
        """

    @abstractmethod
    def mirror(self, model: ResolvedModel, seconds: float) -> dict[str, Any]:
        """Addresses for the staging program on hosts; they stay valid for `seconds`."""

    def read(self, commit: str, file: ModelFile, stopped: Event, start: int, stop: int) -> bytes:
        """The bytes `start` to `stop` of a file.

        Raises:
            Failure: As `open_range`; `DOWNLOAD_CORRUPT` when the file differs from its
                announcement, `INTERRUPTED` when `stopped` is set.
        """
        open_range = partial(self.open_range, commit, file)
        attempt = partial(read_range, open_range, file.name, start, stop, stopped)
        return with_retries(attempt, self._waits)

    def fetch(
        self,
        commit: str,
        file: ModelFile,
        target: Path,
        stopped: Event,
        connections: Connections | None = None,
    ) -> str:
        """Download the missing bytes of a file, and verify it.

        The file grows at the target. A partial file stays there after the last failed attempt.
        Returns as `Download.run`, and raises as `read`.
        """
        open_range, record = partial(self.open_range, commit, file), file_record(file)
        download = Download(
            record, str(target), open_range, stopped, waits=self._waits, connections=connections
        )
        return with_retries(download.run, ())  # the download itself retries


class RemoteSource:
    """One repository of a hub, or prefix of a bucket, and its place in the store.

    Args:
        offline: Send no requests; use stored commits only.
        layout: Kind of content that the repository should have.
    """

    def __init__(
        self,
        client: RemoteClient,
        store: ModelStore,
        *,
        workers: int = 8,
        offline: bool = False,
        layout: Layout = MODEL,
    ) -> None:
        self._client, self._store, self._layout = client, store, layout
        self._workers, self._offline = workers, offline
        self._listed: dict[str, tuple[str, tuple[ModelFile, ...]]] = {}

    def files(self, wanted: Asset) -> tuple[ModelFile, ...]:
        """All files at the source, none in offline mode; raises `SOURCE_...` or `HUB_...`."""
        return () if self._offline else self._list_files(wanted.revision or "")[1]

    def resolve(self, wanted: Asset) -> ResolvedModel:
        """Pin the revision to a commit and read the model's metadata, without its weights.

        A complete commit is read from the store. If the revision is a full commit id, that needs no
        request.

        Raises:
            Failure: `SOURCE_...`, `HUB_...`, `DOWNLOAD_...`, `CONFIG_UNREADABLE` or `DISK_FULL`.
        """
        revision = wanted.revision or ""
        listed: tuple[ModelFile, ...] = ()
        commit = self._stored_commit(revision)
        if commit is None:
            commit, listed = self._list_files(revision)
        is_stored, manifest, weights, description = self._read(wanted, commit, listed)
        if is_stored:
            self._store.remember(revision, commit)
        return ResolvedModel(
            source=manifest.source,
            revision=commit,
            asked_revision=revision,
            path=str(self._store.directory(commit)),
            staged=is_stored,
            files=manifest.files,
            skipped=manifest.skipped,
            weights=manifest.weights,
            headers=join_headers(weights),
            **description,
        )

    def lacking_room(self, model: ResolvedModel) -> str:
        """Why the disk has no space for the downloads of `stage`; empty = it has enough."""
        if model.staged:
            return ""
        missing = self._store.missing(model.revision, model.files)
        return self._store.lacking_room(model.revision, missing)

    def stage(
        self,
        model: ResolvedModel,
        on_progress: Callable[[int, int], None],
        *,
        deadline_seconds: float | None = None,
    ) -> ResolvedModel:
        """Download the missing files, verify them, and publish them. Concurrent callers wait.

        Args:
            on_progress: Called with the present bytes and the bytes of all files, at least every
                half second and at the end.

        Raises:
            Failure: `SOURCE_...`, `HUB_...`, `DOWNLOAD_...` or `DISK_FULL`.
        """
        in_time = deadline(deadline_seconds, f"downloading {self._client.repo}")

        def tick() -> None:
            done = self._store.bytes_present(model.revision, model.files)
            on_progress(done, model.bytes_to_stage)
            in_time()

        if not (model.staged and self._store.manifest(model.revision)):
            with hold(self._store.lock(model.revision, "weights"), tick):
                if self._store.manifest(model.revision) is None:
                    self._complete(model, tick)
        self._store.touch(model.revision)
        self._store.remember(model.asked_revision, model.revision)
        on_progress(model.bytes_to_stage, model.bytes_to_stage)
        path = str(self._store.directory(model.revision))
        return model.model_copy(update={"staged": True, "path": path})

    def _stored_commit(self, revision: str) -> str | None:
        commit = self._store.commit_of(revision)
        stored = commit is not None and self._store.manifest(commit) is not None
        if self._offline and not stored:
            raise self._not_stored(revision)
        return commit if stored and (self._offline or COMMIT.fullmatch(revision)) else None

    def _list_files(self, revision: str) -> tuple[str, tuple[ModelFile, ...]]:
        """The commit of a revision and its files, requested once."""
        try:
            if revision not in self._listed:
                self._listed[revision] = self._client.list_files(revision)
            return self._listed[revision]
        except Failure as failure:
            commit = self._store.commit_of(revision)
            if not failure.cause.retryable or not commit or not self._store.manifest(commit):
                raise
            suggestion = f"It is stored here as commit {commit}: with HF_HUB_OFFLINE=1 that serves."
            raise Failure(failure.cause, failure.detail, suggestion=suggestion) from None

    def _read(
        self, wanted: Asset, commit: str, listed: tuple[ModelFile, ...]
    ) -> tuple[bool, Manifest, list[FileWeights], dict[str, Any]]:
        """Whether a commit is stored, its manifest, its weight headers, and what its files say."""
        tick = deadline(METADATA_SECONDS, f"reading the metadata of {self._client.repo}")
        stored = self._store.manifest(commit)
        # A complete commit does not change, and its store may be one that can only be read.
        with nullcontext() if stored else hold(self._store.lock(commit, "metadata"), tick):
            stored = stored or self._store.manifest(commit)
            if stored:
                place, manifest = self._store.directory(commit), stored
                weights = self._stored_weights(stored)
            else:
                place = self._store.workspace(commit)
                manifest, weights = self._survey(wanted, commit, listed, tick)
            trusts = wanted.trust_remote_code
            description = describe(place, self._layout, weights, trust_remote_code=trusts)
        return stored is not None, manifest, weights, description

    def _survey(
        self, wanted: Asset, commit: str, listed: tuple[ModelFile, ...], tick: Tick
    ) -> tuple[Manifest, list[FileWeights]]:
        """Download the metadata, and read the headers of the weights at the source."""
        family, chosen, skipped = self._layout.choose(listed, wanted.files or "")
        require_distinct(chosen)
        directory = self._store.open_workspace(commit)
        self._download(commit, filter(is_metadata, chosen), tick)
        chosen, skipped, size = keep_indexed(directory, family, chosen, skipped)
        weights = [file for file in chosen if is_weight(file.name)]
        budget = HeaderBudget()

        def weigh_there(file: ModelFile, stopped: Event) -> FileWeights:
            return weigh(file, family, partial(self._client.read, commit, file, stopped), budget)

        jobs = [partial(weigh_there, file) for file in weights]
        parts = run_all(jobs, workers=self._workers, tick=tick)
        manifest = Manifest(
            source=wanted.selection,
            revision=commit,
            files=chosen,
            skipped=skipped,
            weights=summarize(family, (part.summary for part in parts), size),
        )
        return manifest, parts

    def _stored_weights(self, manifest: Manifest) -> list[FileWeights]:
        directory = self._store.directory(manifest.revision)
        try:
            return weigh_here(directory, manifest.weights.family, manifest.files)
        except OSError as error:
            detail = f"{error.filename} cannot be read: {error.strerror}"
            raise Failure(Cause.SOURCE_INCOMPLETE, detail) from None

    def _complete(self, model: ResolvedModel, tick: Tick) -> None:
        if self._offline:
            raise self._not_stored(model.asked_revision or model.revision)
        commit, metadata_lock = model.revision, self._store.lock(model.revision, "metadata")
        with hold(metadata_lock, tick):
            self._store.open_workspace(commit)
            known = self._download(commit, filter(is_metadata, model.files), tick)
        known |= self._download(commit, model.files, tick)
        manifest = Manifest.model_validate(model, from_attributes=True)
        # This may read whole weight files of an earlier process, so the metadata lock is free now.
        manifest = self._store.with_checksums(manifest, known)
        with hold(metadata_lock, tick):
            self._store.publish(manifest)

    def _download(self, commit: str, files: Iterable[ModelFile], tick: Tick) -> dict[str, str]:
        """Download the missing files; returns the checksums computed meanwhile, by name."""
        missing = self._store.missing(commit, files)
        if lacking := self._store.lacking_room(commit, missing):
            raise Failure(Cause.DISK_FULL, lacking)
        connections = Connections(self._workers)

        def download(file: ModelFile, stopped: Event) -> tuple[str, str]:
            target = self._store.incomplete(commit, file.name)
            sha256 = self._client.fetch(commit, file, target, stopped, connections)
            self._store.accept(commit, file)
            return file.name, sha256

        largest_first = sorted(missing, key=lambda file: -file.size)
        jobs = [partial(download, file) for file in largest_first]
        with disk_failures(self._store.workspace(commit).parent):
            return dict(run_all(jobs, workers=self._workers, tick=tick))

    def _not_stored(self, revision: str) -> Failure:
        stored = ", ".join(sorted(self._store.refs())) or "nothing"
        wanted = f"{self._client.repo} at revision {revision or 'of the default branch'!r}"
        return Failure(Cause.SOURCE_OFFLINE, f"{wanted}; stored here: {stored}")


def with_retries(attempt: Callable[[], T], waits: tuple[float, ...]) -> T:
    """Call `attempt`; retry it after each of these waits while its `DownloadError` is transient.

    A name that does not resolve is not tried again here: resolvers repeat their questions, and each
    answer may take 10 s. Whoever calls may try again, and tells so.
    """
    left = iter(waits)
    while True:
        try:
            return attempt()
        except DownloadError as error:
            wait = next(left, None)
            if wait is None or not error.transient or _is_unresolved(error):
                marked = error.__cause__  # by `retryable_failures`, with its suggestion
                known = marked if isinstance(marked, Failure) else None
                raise known or Failure(Cause(error.cause), error.detail) from None
        time.sleep(wait)


def _is_unresolved(error: BaseException | None) -> bool:
    while error and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def retryable_failures() -> Iterator[None]:
    """Raise `HUB_UNAVAILABLE` as a transient `DownloadError`, which may be retried."""
    try:
        yield
    except Failure as failure:
        if failure.cause is not Cause.HUB_UNAVAILABLE:
            raise
        raise DownloadError(failure.cause.value, failure.detail, transient=True) from failure
