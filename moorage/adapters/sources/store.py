"""The model store: real files in `<models>/<org>--<repo>/<commit>/`, complete or absent.

A commit is assembled in `<commit>.partial` next to it. A file moves to its path there when it is
verified, and the directory gets its final name when all files are there. So a process may be killed
at any moment: verified files stay, and no partial file or directory looks complete.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, cast

from pydantic import ValidationError

from moorage.adapters.system.file_locks import file_lock, locked
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.transfer.checksum import File, mismatch, sha256_of, size_of
from moorage.adapters.transfer.file_checks import (
    INCOMPLETE,
    MARGIN,
    damaged_files,
    is_complete,
    manifest_files,
    publish,
    read_json,
)
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.inventory.model_store import MANIFEST
from moorage.models.source import ModelFile, SkippedFile, WeightSummary

if TYPE_CHECKING:
    from filelock import BaseFileLock

MOST_FILES = 10_000
"""Limit of the files of a model: models have some hundreds. More are a mistake, such as `/`, or an
attack."""

LARGEST_FILE = 1 << 60
LONGEST_NAME = 1000
CHECKSUM = re.compile(r"[0-9a-f]{32,64}")
ATTACK = "Do not use this repository: such a name is an attack or a damaged listing."


class Manifest(Value):
    """The content of a complete directory; the fields are those of `ResolvedModel`."""

    rules: Literal[1] = 1
    """Version of the rules that choose files. A model with another version in its manifest
is staged again."""

    source: str
    revision: str
    files: tuple[ModelFile, ...]
    skipped: tuple[SkippedFile, ...]
    weights: WeightSummary


def staged_models(models: Path) -> frozenset[str]:
    """The complete models of a directory, as `source@revision`."""
    manifests = filter(None, map(_read_manifest, models.glob(f"*/*/{MANIFEST}")))
    return frozenset(f"{manifest.source}@{manifest.revision}" for manifest in manifests)


def _read_manifest(path: Path) -> Manifest | None:
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None  # it is being removed, or has other rules: its model will be staged again


COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A full commit id of Git, with SHA-1 or SHA-256."""

DEFAULT_BRANCH = "main"
"""Name of the default branch in every repository of the hub."""


class ModelStore:
    """The stored commits of one repository, such as `org/repo`, in the directory of all models."""

    def __init__(self, models: Path, repo: str) -> None:
        self._folder = models / repo.replace("/", "--")
        self._refs = self._folder / "refs.json"

    def refs(self) -> dict[str, str]:
        """The remembered commits by branch or tag."""
        return {
            name: commit
            for name, commit in read_json(str(self._refs)).items()
            if isinstance(commit, str) and COMMIT.fullmatch(commit)
        }

    def commit_of(self, revision: str) -> str | None:
        """The commit of a revision; None = unknown here."""
        if COMMIT.fullmatch(revision):
            return revision
        return self.refs().get(revision or DEFAULT_BRANCH)

    def remember(self, revision: str, commit: str) -> None:
        """Record the commit of a branch or tag; empty = the default branch.

        A store that may only be read keeps no names, which only offline mode needs.
        """
        name = revision or DEFAULT_BRANCH
        if COMMIT.fullmatch(name) or self.refs().get(name) == commit:
            return
        with suppress(OSError), locked(self._refs.with_name(".refs.json.lock"), -1):
            fresh = self._refs.with_name(".refs.json.new")
            fresh.write_text(json.dumps({**self.refs(), name: commit}, indent=1, sort_keys=True))
            os.replace(fresh, self._refs)

    def directory(self, commit: str) -> Path:
        """The directory of a complete commit."""
        return self._folder / commit

    def workspace(self, commit: str) -> Path:
        """The directory of a commit that is not complete yet."""
        return self._folder / f"{commit}.partial"

    def incomplete(self, commit: str, name: str) -> Path:
        """The path at which a file grows until it is verified."""
        return self.workspace(commit) / INCOMPLETE / name

    def manifest(self, commit: str) -> Manifest | None:
        """The manifest of a commit; None if it is missing or a file differs from it."""
        directory = self.directory(commit)
        manifest = _read_manifest(directory / MANIFEST)
        whole = manifest and is_complete(str(directory), [*map(file_record, manifest.files)])
        return manifest if whole else None

    def lock(self, commit: str, purpose: str) -> "BaseFileLock":
        """A lock for all processes on this machine; it is released when its holder dies."""
        locks = self._folder / ".locks"
        with disk_failures(self._folder):
            locks.mkdir(parents=True, exist_ok=True)
        return file_lock(locks / f"{commit}.{purpose}")

    def open_workspace(self, commit: str) -> Path:
        """Create the workspace. A damaged directory becomes it, with the intact files."""
        workspace, directory = self.workspace(commit), self.directory(commit)
        with disk_failures(self._folder):
            if directory.exists() and not workspace.exists():
                directory.rename(workspace)
                for file in damaged_files(str(workspace), manifest_files(str(workspace))):
                    (workspace / file["name"]).unlink(missing_ok=True)
                (workspace / MANIFEST).unlink(missing_ok=True)
            workspace.mkdir(parents=True, exist_ok=True)
        return workspace

    def missing(self, commit: str, files: Iterable[ModelFile]) -> tuple[ModelFile, ...]:
        """The files that are not in the workspace yet."""
        workspace = self.workspace(commit)
        return tuple(file for file in files if size_of(workspace / file.name) != file.size)

    def bytes_present(self, commit: str, files: Iterable[ModelFile]) -> int:
        """The present bytes, of complete and of growing files."""
        # In the order in which a file moves, so that a moving file is never missed.
        growing = self.workspace(commit) / INCOMPLETE
        folders = (growing, self.workspace(commit), self.directory(commit))
        return sum(
            min(file.size, max(0, *(size_of(folder / file.name) for folder in folders)))
            for file in files
        )

    def lacking_room(self, commit: str, missing: Sequence[ModelFile]) -> str:
        """Why the disk has no space for the missing files, with a margin; empty = it has enough."""
        left = sum(file.size for file in missing) - self.bytes_present(commit, missing)
        free = shutil.disk_usage(self._folder).free
        if free >= left * MARGIN:
            return ""
        found = f"{human_bytes(free)} are free at {self._folder}"
        return f"{found}, {human_bytes(int(left * MARGIN))} are needed"

    def accept(self, commit: str, file: ModelFile) -> None:
        """Move a downloaded and verified file to its path in the workspace."""
        place = self.workspace(commit) / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        self.incomplete(commit, file.name).replace(place)

    def with_checksums(self, manifest: Manifest, known: Mapping[str, str]) -> Manifest:
        """The manifest, with SHA-256 checksums for files without a SHA-256 or Git id.

        `known` are the checksums that were computed during downloads, by name.
        """
        files = []
        for file in manifest.files:
            path = self.workspace(manifest.revision) / file.name
            if not (file.sha256 or file.git_oid) and path.is_file():
                sha256 = known.get(file.name) or sha256_of(str(path))
                file = file.model_copy(update={"sha256": sha256})
            files.append(file)
        return manifest.model_copy(update={"files": tuple(files)})

    def publish(self, manifest: Manifest) -> None:
        """Turn the workspace into the complete directory; `DOWNLOAD_CORRUPT` if a file vanished."""
        workspace = self.workspace(manifest.revision)
        if lost := self.missing(manifest.revision, manifest.files):
            names = ", ".join(file.name for file in lost[:8])
            raise Failure(Cause.DOWNLOAD_CORRUPT, f"{names} vanished from {workspace}")
        shutil.rmtree(workspace / INCOMPLETE, ignore_errors=True)
        place, text = self.directory(manifest.revision), manifest.model_dump_json(indent=1)
        with disk_failures(self._folder):
            publish(str(workspace), str(place), text, [*map(file_record, manifest.files)])

    def touch(self, commit: str) -> None:
        """Record the use of a commit: commits that are long unused may be pruned."""
        with suppress(OSError):
            os.utime(self.directory(commit) / MANIFEST)


def verify(path: Path, file: ModelFile) -> None:
    """Raise `DOWNLOAD_CORRUPT` for a file with another size or checksum than announced."""
    if why := mismatch(str(path), file_record(file)):
        raise Failure(Cause.DOWNLOAD_CORRUPT, why)


def file_record(file: ModelFile) -> File:
    """A file in the form that programs on hosts use."""
    return cast("File", file.model_dump(exclude={"target"}))


def is_size(size: object) -> bool:
    """Whether a value from a listing is a number of bytes that a file may have."""
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= LARGEST_FILE


def require_inside(name: object) -> str:
    """Return a file name that stays inside its model's directory; refuse any other.

    Raises:
        Failure: `SOURCE_INCOMPLETE` for a name that leads out of it, `SOURCE_CORRUPT` for a name
            that cannot be printed or is not a text.
    """
    if not isinstance(name, str):
        raise Failure(Cause.SOURCE_CORRUPT, "a file name is no text", suggestion=ATTACK)
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise Failure(
            Cause.SOURCE_INCOMPLETE,
            f"the file name '{short(name)}' leads out of the model's directory",
            suggestion=ATTACK,
        )
    return require_name(name)


def require_distinct(files: Sequence[ModelFile]) -> None:
    """Raise `SOURCE_CORRUPT` when two files have the same path, or one path is below the other."""
    paths = [PurePosixPath(file.name) for file in files]
    folders = {folder for path in paths for folder in path.parents}
    if len(set(paths)) < len(paths) or not folders.isdisjoint(paths):
        raise Failure(Cause.SOURCE_CORRUPT, "two files have the same path", suggestion=ATTACK)


def require_name(name: str) -> str:
    """Return a name that is a short text on one printable line; others raise `SOURCE_CORRUPT`."""
    if len(name) > LONGEST_NAME:
        raise Failure(Cause.SOURCE_CORRUPT, f"the file name '{short(name)}' is too long")
    if not name.isprintable():
        detail = f"the file name '{short(name)}' is not UTF-8, or has control characters"
        raise Failure(Cause.SOURCE_CORRUPT, detail, suggestion=f"Rename it. {ATTACK}")
    return name
