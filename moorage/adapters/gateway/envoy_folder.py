"""The folder of a gateway as Envoy sees it, on this machine or on a host of the fleet."""

import json
import os
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx

from moorage.adapters.files.safe_files import read_part, write_private
from moorage.common.failures import Cause, Failure
from moorage.gateway.envoy import ADMIN_SOCKET, OWN_FOLDER

DOORMAN_SOCKET = "doorman.sock"
LONGEST_SOCKET = 107
"""Most bytes in the path of a Unix socket: `sun_path` of unix(7) without the final NUL."""


class FileState(NamedTuple):
    """Identity and size of a file."""

    inode: int
    size: int


class EnvoyFolder(Protocol):
    """The folder with Envoy's files. All paths are relative to it.

    Attributes:
        root: Path of the folder, as Envoy sees it.
        doorman: Path of the doorman's socket, as Envoy sees it; empty = out of Envoy's reach.
        is_here: Whether Envoy runs on this machine.
        pause_seconds: Interval between checks of Envoy while nothing changes.
    """

    root: str
    doorman: str
    is_here: bool
    pause_seconds: float

    def prepare(self) -> None:
        """Create the folder into which Envoy writes."""

    def write(self, path: str, document: Any) -> None:
        """Replace a JSON file atomically; only Envoy's user may read it."""

    def state(self, path: str) -> FileState | None:
        """Identity and size of a file; None = it does not exist."""

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Bytes of a regular file from one offset up to another or to its end."""

    def rename(self, path: str, target: str) -> None:
        """Rename a file, and replace the target if it exists."""

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def admin(self) -> httpx.BaseTransport:
        """Transport to Envoy's administration interface."""


class LocalFolder:
    """A folder of this machine.

    Args:
        folder: Contains engines' API keys, so only its owner may read it.
    """

    is_here = True
    pause_seconds = 0.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.root = str(self._folder)
        self.doorman = str(self._folder / DOORMAN_SOCKET)

    def prepare(self) -> None:
        """Create the folder into which Envoy writes.

        Raises:
            Failure: `BAD_SETTING` when the path is too long for a Unix socket.
        """
        _require_short(self._folder / ADMIN_SOCKET)
        (self._folder / OWN_FOLDER).mkdir(exist_ok=True, mode=0o700, parents=True)

    def write(self, path: str, document: Any) -> None:
        """Replace a JSON file atomically; only this user may read it."""
        write_private(self._folder / path, json.dumps(document), over=True)

    def state(self, path: str) -> FileState | None:
        """Identity and size of a file; None = it does not exist."""
        try:
            found = (self._folder / path).stat()
        except FileNotFoundError:
            return None
        return FileState(found.st_ino, found.st_size)

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Bytes of a regular file from one offset up to another or to its end."""
        return read_part(self._folder / path, start, stop)

    def rename(self, path: str, target: str) -> None:
        """Rename a file, and replace the target if it exists."""
        (self._folder / path).replace(self._folder / target)

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        (self._folder / path).unlink(missing_ok=True)

    def admin(self) -> httpx.BaseTransport:
        """Transport over the Unix socket of the administration interface, private to this user."""
        # Loading all certificate authorities takes 40 ms; this runs several times a second.
        no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx.HTTPTransport(uds=str(self._folder / ADMIN_SOCKET), verify=no_tls)


def _require_short(socket: Path) -> None:
    """Raise `BAD_SETTING` when the path is too long for a Unix socket."""
    if len(os.fsencode(socket)) > LONGEST_SOCKET:
        raise Failure(
            Cause.BAD_SETTING,
            f"{socket} is too long for a socket, which may have {LONGEST_SOCKET} bytes",
            suggestion="Set MOORAGE_HOME to a shorter path.",
        )
