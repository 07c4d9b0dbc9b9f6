"""Files of this machine, sent to a staging container before it starts.

It puts them into the workspace of the host: where hosts share a store, two containers never write
to the same file.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import connect
from moorage.adapters.docker.connection import READ_SECONDS
from moorage.adapters.files.safe_files import open_regular
from moorage.adapters.transfer.file_checks import INCOMPLETE
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from moorage.inventory.model_store import MANIFEST, model_directory
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ModelFile, ResolvedModel

Report = Callable[[int, int], None]
"""Called with the bytes that are there, and the bytes of all files."""

FED_SECONDS = 60.0
"""How long to watch a container that does not start and receives no files: then it is abandoned."""

SENT_SECONDS = 5.0
"""Interval between counts of the sent bytes; a count takes a request for each file."""

PIECE = 1 << 20


def missing_files(
    access: Access, container: sdk.Container, model: ResolvedModel
) -> dict[ModelFile, int]:
    """The files of a model that a host lacks, with the bytes that each takes more there."""
    home = model_directory(STORE, model.source, model.revision)
    if _size(container, f"{home}/{MANIFEST}") >= 0:
        return {}
    workspace = workspace_in_container(access, model)
    there = {file: _bytes_of(container, workspace, file) for file in model.files}
    return {file: file.size - max(0, size) for file, size in there.items() if file.size != size}


def hand_over(
    access: Access,
    container: sdk.Container,
    model: ResolvedModel,
    missing: Sequence[ModelFile],
    on_progress: Report,
    until: float,
) -> None:
    """Send files of a model to a container before it starts; `until` is a monotonic time."""
    workspace = workspace_in_container(access, model)
    patient = connect(access, READ_SECONDS).api
    sent, size = model.bytes_to_stage - sum(file.size for file in missing), model.bytes_to_stage

    def counted(pieces: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal sent
        for piece in pieces:
            must_be_before(until)
            yield piece
            sent += len(piece)
            on_progress(min(sent, size), size)

    for file in missing:
        target = f"{workspace}/{INCOMPLETE}/{file.name}".removeprefix(STORE)
        patient.put_archive(str(container.id), STORE, counted(parcel(model, file, target)))


def parcel(model: ResolvedModel, file: ModelFile, target: str) -> Iterator[bytes]:
    """A tar of one file as a stream of pieces, to be unpacked at `target`.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file cannot be read, or becomes shorter meanwhile,
            `SOURCE_CORRUPT` when a link has replaced it since it was listed.
    """
    path = Path(file.target or Path(model.path, file.name))
    entry = tarfile.TarInfo(target.lstrip("/"))
    entry.size = file.size
    yield entry.tobuf(tarfile.GNU_FORMAT)
    sent = 0
    try:
        with open_regular(path) as content:
            _require_same(model, file, path, os.fstat(content.fileno()))
            while piece := content.read(min(PIECE, file.size - sent)):
                sent += len(piece)
                yield piece
    except OSError as error:  # the daemon's client would take it for one of the connection
        detail = f"{path} cannot be read: {error.strerror}"
        raise Failure(Cause.SOURCE_INCOMPLETE, detail) from error
    if sent < file.size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"{path} became shorter while it was read")
    yield bytes(-file.size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


class Sending:
    """Detects whether a process still sends a model's files to a container.

    It counts from its own beginning: the host's clock may be wrong.
    """

    def __init__(self, model: ResolvedModel, workspace: str) -> None:
        self._model, self._workspace = model, workspace
        self._sent, self._grew, self._looked = -1, time.monotonic(), -math.inf

    def is_active(self, container: sdk.Container) -> bool:
        """Whether bytes arrived in the last `FED_SECONDS`, counted every `SENT_SECONDS`."""
        now = time.monotonic()
        if now - self._looked >= SENT_SECONDS:
            self._looked, sent = now, self._sent
            files, workspace = self._model.files, self._workspace
            with contextlib.suppress(*sdk.DAEMON_ERRORS):
                sent = sum(max(0, _bytes_of(container, workspace, file)) for file in files)
            if sent != self._sent:
                self._sent, self._grew = sent, now
        return now - self._grew <= FED_SECONDS


def workspace_name(access: Access, revision: str) -> str:
    """Name of the directory in which a host assembles a model; it finds its own again."""
    return f"{revision}.{hashlib.sha256(access.address.encode()).hexdigest()[:12]}.partial"


def workspace_in_container(access: Access, model: ResolvedModel) -> str:
    """Path of a host's workspace of a model in a staging container."""
    return model_directory(STORE, model.source, workspace_name(access, model.revision))


def must_be_before(until: float) -> None:
    """Raise `DOWNLOAD_TIMEOUT` after a monotonic time."""
    if time.monotonic() > until:
        raise Failure(Cause.DOWNLOAD_TIMEOUT, "it took too long")


def _require_same(model: ResolvedModel, file: ModelFile, path: Path, found: os.stat_result) -> None:
    real = Path(os.path.realpath(path))
    is_own = str(real) == file.target or real.is_relative_to(os.path.realpath(model.path))
    if not is_own or not os.path.samestat(found, real.lstat()):
        raise Failure(Cause.SOURCE_CORRUPT, f"{path} has become a link to {real}")


def _bytes_of(container: sdk.Container, workspace: str, file: ModelFile) -> int:
    """Size of a sent file, verified or not yet; -1 if it does not exist."""
    places = (workspace, f"{workspace}/{INCOMPLETE}")
    return max(_size(container, f"{place}/{file.name}") for place in places)


def _size(container: sdk.Container, path: str) -> int:
    """Size of a file in a container's mounts; -1 if it does not exist."""
    try:
        stream, facts = container.get_archive(path)
    except sdk.NotFound:
        return -1
    stream.close()  # type: ignore[attr-defined]
    return int(facts["size"]) if facts else -1
