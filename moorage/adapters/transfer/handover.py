"""Sends the files of a local directory to a host's staging container, before it starts."""

from __future__ import annotations

import contextlib
import math
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from moorage.adapters.docker.client import READ_SECONDS, connect
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from moorage.inventory.model_store import MANIFEST, is_local, model_directory
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ModelFile, ResolvedModel

SENT_SECONDS = 5.0
"""How often the sent bytes are counted: that takes a request for each file."""


def hand_over(access: Access, container: Container, model: ResolvedModel) -> None:
    """Send a container that is not started the files that it lacks, of a local model.

    Raises:
        DockerException: When the daemon does not take them.
    """
    if not is_local(model.source):
        return
    home = model_directory(STORE, model.source, model.revision)
    if _size(container, f"{home}/{MANIFEST}") >= 0:
        return
    patient = connect(access, READ_SECONDS).api
    for file in model.files:
        places = _places(home, file)
        if file.size not in [_size(container, path) for path in places]:
            content = parcel(model, file, places[-1].removeprefix(STORE))
            patient.put_archive(str(container.id), STORE, content)


class Sending:
    """Whether somebody still hands a model over to a container.

    Args:
        model: The model.
        patience_seconds: How long nothing may arrive.
    """

    def __init__(self, model: ResolvedModel, patience_seconds: float) -> None:
        self._model, self._patience = model, patience_seconds
        self._sent, self._grew, self._looked = -1, -math.inf, -math.inf

    def is_active(self, container: Container) -> bool:
        """Whether bytes arrived lately. They are counted only every few seconds."""
        now = time.monotonic()
        if is_local(self._model.source) and now - self._looked >= SENT_SECONDS:
            sent, self._looked = self._bytes_there(container), now
            if sent != self._sent:
                self._sent, self._grew = sent, now
        return now - self._grew <= self._patience

    def _bytes_there(self, container: Container) -> int:
        home = model_directory(STORE, self._model.source, self._model.revision)
        sizes = ([_size(container, at) for at in _places(home, f)] for f in self._model.files)
        with contextlib.suppress(DockerException, RequestException):
            return sum(max(0, *found) for found in sizes)
        return self._sent


def _places(home: str, file: ModelFile) -> tuple[str, str]:
    """Where a file that was sent may be: verified, or not yet."""
    return f"{home}.partial/{file.name}", f"{home}.partial/.incomplete/{file.name}"


def _size(container: Container, path: str) -> int:
    """Bytes of a file in a container's mounts; -1 when it is not there."""
    try:
        stream, facts = container.get_archive(path)
    except NotFound:
        return -1
    stream.close()  # type: ignore[attr-defined]
    return int(facts["size"]) if facts else -1


PIECE = 1 << 20
BLOCK = tarfile.BLOCKSIZE


def parcel(model: ResolvedModel, file: ModelFile, target: str) -> Iterator[bytes]:
    """A tar of one file, in pieces, to be unpacked at `target`; it is never held in memory.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the file becomes shorter meanwhile.
    """
    path = Path(file.target or Path(model.path, file.name))
    entry = tarfile.TarInfo(target.lstrip("/"))
    entry.size = file.size
    yield entry.tobuf(tarfile.GNU_FORMAT)
    sent = 0
    with path.open("rb") as content:
        while piece := content.read(min(PIECE, file.size - sent)):
            sent += len(piece)
            yield piece
    if sent < file.size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"{path} became shorter while it was read")
    yield bytes(-file.size % BLOCK + 2 * BLOCK)
