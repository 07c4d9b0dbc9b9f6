"""The model store: real files in `<models>/<org>--<repo>/<commit>/`, complete or not there.

A commit is worked on in `<commit>.partial` beside it. A file gets its place there once it is
verified, and the directory gets its name once all files have theirs, so that a process may be
killed at any moment: what it finished stays, and nothing half-done looks finished.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from filelock import BaseFileLock, FileLock
from pydantic import ValidationError

from moorage.adapters.sources.verify import verify
from moorage.failures import Cause, Failure
from moorage.models.source import ModelFile, SkippedFile, WeightSummary
from moorage.units import human_bytes
from moorage.values import Value

MANIFEST = ".moorage.json"
INCOMPLETE = ".incomplete"
REFS = "refs.json"
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
DEFAULT_BRANCH = "main"
MARGIN = 1.05
"""Free space asked for, as a multiple of what is still to be downloaded."""


class Manifest(Value):
    """What a complete directory holds; the fields are those of `ResolvedModel`."""

    source: str
    revision: str
    files: tuple[ModelFile, ...]
    skipped: tuple[SkippedFile, ...]
    weights: WeightSummary


class ModelStore:
    """The stored commits of one repository.

    Args:
        models: Directory of all models.
        repo: `org/repo`.
    """

    def __init__(self, models: Path, repo: str) -> None:
        self._shelf = models / repo.replace("/", "--")

    def directory(self, commit: str) -> Path:
        """Where a complete commit is."""
        return self._shelf / commit

    def workspace(self, commit: str) -> Path:
        """Where a commit is while it is not complete."""
        return self._shelf / f"{commit}.partial"

    def incomplete(self, commit: str, name: str) -> Path:
        """Where a file grows until it is verified."""
        return self.workspace(commit) / INCOMPLETE / name

    def manifest(self, commit: str) -> Manifest | None:
        """Tell what a commit holds, if it is there and every file has its size."""
        try:
            content = (self.directory(commit) / MANIFEST).read_bytes()
            manifest = Manifest.model_validate_json(content)
        except (OSError, ValidationError):
            return None
        return None if _absent(self.directory(commit), manifest.files) else manifest

    def lock(self, commit: str, purpose: str) -> BaseFileLock:
        """Make the lock that processes on this machine share; it is released when one dies."""
        locks = self._shelf / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{commit}.{purpose}")

    def open_workspace(self, commit: str) -> Path:
        """Make the workspace; a directory that lost files becomes it, with what is left."""
        workspace, directory = self.workspace(commit), self.directory(commit)
        if directory.exists() and not workspace.exists():
            directory.rename(workspace)
            (workspace / MANIFEST).unlink(missing_ok=True)
        workspace.mkdir(parents=True, exist_ok=True)
        return workspace

    def missing(self, commit: str, files: Iterable[ModelFile]) -> tuple[ModelFile, ...]:
        """Name the files that the workspace does not hold yet."""
        return _absent(self.workspace(commit), files)

    def bytes_present(self, commit: str, files: Iterable[ModelFile]) -> int:
        """Count the bytes that are here, of complete and of growing files."""
        places = (self.directory(commit), self.workspace(commit))
        growing = self.workspace(commit) / INCOMPLETE
        return sum(
            max(
                *(file.size for place in places if _size(place / file.name) == file.size),
                min(file.size, _size(growing / file.name)),
                0,
                0,
            )
            for file in files
        )

    def accept(self, commit: str, file: ModelFile) -> None:
        """Verify a downloaded file and give it its place.

        Raises:
            Failure: `DOWNLOAD_CORRUPT` when it is not what the hub announced; it is deleted then.
        """
        downloaded = self.incomplete(commit, file.name)
        place = self.workspace(commit) / file.name
        try:
            verify(downloaded, file)
        except Failure:
            downloaded.unlink()
            raise
        place.parent.mkdir(parents=True, exist_ok=True)
        downloaded.replace(place)

    def publish(self, manifest: Manifest) -> None:
        """Turn the workspace into the complete directory, in one step.

        Raises:
            Failure: `DOWNLOAD_CORRUPT` when a file is not there.
        """
        workspace = self.workspace(manifest.revision)
        if lost := self.missing(manifest.revision, manifest.files):
            names = ", ".join(file.name for file in lost[:8])
            raise Failure(Cause.DOWNLOAD_CORRUPT, f"{names} vanished from {workspace}")
        shutil.rmtree(workspace / INCOMPLETE, ignore_errors=True)
        (workspace / MANIFEST).write_text(manifest.model_dump_json(indent=1))
        directory = self.directory(manifest.revision)
        shutil.rmtree(directory, ignore_errors=True)
        workspace.rename(directory)

    def remember(self, revision: str, commit: str) -> None:
        """Keep which commit a branch or tag stood for; empty = the default branch."""
        with self.lock("all", "refs"):
            refs = self.remembered() | {revision or DEFAULT_BRANCH: commit}
            fresh = self._shelf / f"{REFS}.new"
            fresh.write_text(json.dumps(refs, indent=1, sort_keys=True))
            os.replace(fresh, self._shelf / REFS)

    def remembered(self) -> dict[str, str]:
        """Tell which commit each branch or tag stood for when it was last stored."""
        try:
            refs = json.loads((self._shelf / REFS).read_bytes())
        except (OSError, ValueError):
            return {}
        return {
            str(name): commit
            for name, commit in (refs.items() if isinstance(refs, dict) else ())
            if isinstance(commit, str) and COMMIT.fullmatch(commit)
        }

    def commit_of(self, revision: str) -> str | None:
        """Tell the commit of a revision without asking the hub, if it is known here."""
        if COMMIT.fullmatch(revision):
            return revision
        return self.remembered().get(revision or DEFAULT_BRANCH)

    def require_room(self, needed: int) -> None:
        """Check that the disk has room for a number of bytes, and some more.

        Raises:
            Failure: `DISK_FULL` when it has not.
        """
        self._shelf.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._shelf).free
        if free < needed * MARGIN:
            found = f"{human_bytes(free)} are free at {self._shelf}"
            asked = f"{human_bytes(int(needed * MARGIN))} are needed"
            raise Failure(Cause.DISK_FULL, f"{found}, {asked}")


def _absent(directory: Path, files: Iterable[ModelFile]) -> tuple[ModelFile, ...]:
    return tuple(file for file in files if _size(directory / file.name) != file.size)


def _size(path: Path) -> int:
    """Bytes of a file; -1 when there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
