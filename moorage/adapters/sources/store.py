"""The model store: real files in `<models>/<org>--<repo>/<commit>/`, complete or not there.

A commit is assembled in `<commit>.partial` next to it. A file gets its place there once it is
verified, and the directory gets its name once all files have theirs, so that a process may be
killed at any moment: what it finished stays, and nothing half-done looks finished.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Literal

from filelock import BaseFileLock, FileLock
from pydantic import ValidationError

from moorage.adapters.sources.announced_files import file_record
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.transfer.file_checks import (
    File,
    damaged_files,
    is_whole,
    manifest_files,
    sha256_of,
    size_of,
    write_stamps,
)
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.inventory.model_store import MANIFEST
from moorage.models.source import ModelFile, SkippedFile, WeightSummary

INCOMPLETE = ".incomplete"
MARGIN = 1.05
"""Required free space, as a multiple of what is still to be downloaded."""


class Manifest(Value):
    """What a complete directory holds.

    Attributes:
        rules: Raised when the choice of files changes: what was chosen before is chosen anew then.
        source: As in `ResolvedModel`, like the rest.
    """

    rules: Literal[1] = 1
    source: str
    revision: str
    files: tuple[ModelFile, ...]
    skipped: tuple[SkippedFile, ...]
    weights: WeightSummary


def staged_models(models: Path) -> frozenset[str]:
    """The complete models of a directory, as `source@revision`."""
    found = set()
    for path in models.glob(f"*/*/{MANIFEST}"):
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue  # it is being removed, or of other rules: it will be staged anew
        found.add(f"{manifest.source}@{manifest.revision}")
    return frozenset(found)


REFS = "refs.json"
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A full commit id, as Git writes it with SHA-1 or SHA-256."""

DEFAULT_BRANCH = "main"
"""The hub calls it so in every repository."""


class Refs:
    """The remembered revisions of one repository, in its directory in the store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit_of(self, revision: str) -> str | None:
        """The commit of a revision, if it is known here."""
        if COMMIT.fullmatch(revision):
            return revision
        return self.all().get(revision or DEFAULT_BRANCH)

    def all(self) -> dict[str, str]:
        """Commits by branch or tag."""
        try:
            refs = json.loads((self._folder / REFS).read_bytes())
        except (OSError, ValueError):
            return {}
        return {
            str(name): commit
            for name, commit in (refs.items() if isinstance(refs, dict) else ())
            if isinstance(commit, str) and COMMIT.fullmatch(commit)
        }

    def remember(self, revision: str, commit: str) -> None:
        """Keep which commit a branch or tag stands for; empty = the default branch."""
        name = revision or DEFAULT_BRANCH
        if COMMIT.fullmatch(name) or self.all().get(name) == commit:
            return
        with FileLock(self._folder / f".{REFS}.lock"):
            fresh = self._folder / f".{REFS}.new"
            fresh.write_text(json.dumps({**self.all(), name: commit}, indent=1, sort_keys=True))
            os.replace(fresh, self._folder / REFS)


class ModelStore:
    """The stored commits of one repository, such as `org/repo`, in the directory of all models.

    Attributes:
        refs: Which commit a branch or tag stood for.
    """

    def __init__(self, models: Path, repo: str) -> None:
        self._folder = models / repo.replace("/", "--")
        self.refs = Refs(self._folder)

    def directory(self, commit: str) -> Path:
        """Where a complete commit is."""
        return self._folder / commit

    def workspace(self, commit: str) -> Path:
        """Where a commit is while it is not complete."""
        return self._folder / f"{commit}.partial"

    def incomplete(self, commit: str, name: str) -> Path:
        """Where a file grows until it is verified."""
        return self.workspace(commit) / INCOMPLETE / name

    def manifest(self, commit: str) -> Manifest | None:
        """What a commit holds, if every file is what it was when it was verified."""
        try:
            content = (self.directory(commit) / MANIFEST).read_bytes()
            manifest = Manifest.model_validate_json(content)
        except (OSError, ValidationError):
            return None
        return manifest if is_whole(str(self.directory(commit)), _records(manifest.files)) else None

    def lock(self, commit: str, purpose: str) -> BaseFileLock:
        """A lock for all processes on this machine; it falls when its holder dies."""
        locks = self._folder / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{commit}.{purpose}")

    def open_workspace(self, commit: str) -> Path:
        """Make the workspace; a directory that lost files becomes it, with what is left."""
        workspace, directory = self.workspace(commit), self.directory(commit)
        if directory.exists() and not workspace.exists():
            directory.rename(workspace)
            for file in damaged_files(str(workspace), manifest_files(str(workspace))):
                (workspace / file["name"]).unlink(missing_ok=True)
            (workspace / MANIFEST).unlink(missing_ok=True)
        workspace.mkdir(parents=True, exist_ok=True)
        return workspace

    def missing(self, commit: str, files: Iterable[ModelFile]) -> tuple[ModelFile, ...]:
        """The files that the workspace does not hold yet."""
        workspace = self.workspace(commit)
        return tuple(file for file in files if size_of(workspace / file.name) != file.size)

    def bytes_present(self, commit: str, files: Iterable[ModelFile]) -> int:
        """The bytes that are here, of complete and of growing files."""
        return sum(self._bytes_of(commit, file) for file in files)

    def require_room(self, needed: int) -> None:
        """Raise `DISK_FULL` unless the disk has room for a number of bytes, and some more."""
        free = shutil.disk_usage(self._folder).free
        if free < needed * MARGIN:
            found = f"{human_bytes(free)} are free at {self._folder}"
            needed_room = f"{human_bytes(int(needed * MARGIN))} are needed"
            raise Failure(Cause.DISK_FULL, f"{found}, {needed_room}")

    def disk_failures(self) -> AbstractContextManager[None]:
        """Turn errors of the disk into failures."""
        return disk_failures(self._folder)

    def accept(self, commit: str, file: ModelFile) -> None:
        """Give a downloaded and verified file its place."""
        place = self.workspace(commit) / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        self.incomplete(commit, file.name).replace(place)

    def with_checksums(self, manifest: Manifest) -> Manifest:
        """The manifest, with the checksums of files whose source announced no lasting one."""
        workspace = self.workspace(manifest.revision)
        return manifest.model_copy(
            update={"files": tuple(_with_checksum(workspace, file) for file in manifest.files)}
        )

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
        write_stamps(str(workspace), _records(manifest.files))
        directory = self.directory(manifest.revision)
        shutil.rmtree(directory, ignore_errors=True)
        workspace.rename(directory)

    def touch(self, commit: str) -> None:
        """Note that a commit is used: what was not for long may be pruned."""
        with suppress(OSError):
            os.utime(self.directory(commit) / MANIFEST)

    def _bytes_of(self, commit: str, file: ModelFile) -> int:
        # In the order in which a file moves, so that one on the move is never missed.
        places = (
            self.incomplete(commit, file.name),
            self.workspace(commit) / file.name,
            self.directory(commit) / file.name,
        )
        return min(file.size, max(0, *(size_of(place) for place in places)))


def _records(files: Iterable[ModelFile]) -> list[File]:
    return [file_record(file) for file in files]


def _with_checksum(workspace: Path, file: ModelFile) -> ModelFile:
    path = workspace / file.name
    if file.sha256 or file.git_oid or not path.is_file():
        return file
    with path.open("rb") as content:
        return file.model_copy(update={"sha256": sha256_of(content)})
