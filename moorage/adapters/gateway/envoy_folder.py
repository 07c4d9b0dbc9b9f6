"""The folder of a gateway, as its Envoy sees it: here, or on a host of the fleet."""

import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx

from moorage.adapters.files.safe_files import read_part, write_private
from moorage.gateway.envoy import ADMIN_SOCKET, OWN_FOLDER

DOORMAN_SOCKET = "doorman.sock"


class FileState(NamedTuple):
    """Which file it is, and how large."""

    inode: int
    size: int


class EnvoyFolder(Protocol):
    """Where Envoy has its files. All paths are relative to it.

    Attributes:
        root: Its path, as Envoy sees it.
        doorman: The doorman's socket, as Envoy sees it; empty = it cannot reach it.
        is_here: Whether Envoy runs on this machine.
        pause_seconds: How long Envoy is not asked while nothing changes.
    """

    root: str
    doorman: str
    is_here: bool
    pause_seconds: float

    def prepare(self) -> None:
        """Have the folder into which Envoy writes."""

    def write(self, path: str, document: Any) -> None:
        """Rename a JSON file into place, which only Envoy's user may read."""

    def state(self, path: str) -> FileState | None:
        """What is known of a file; None = it is not there."""

    def read(self, path: str, start: int, stop: int) -> bytes:
        """The bytes of a regular file from one offset up to another, or to its end."""

    def rename(self, path: str, target: str) -> None:
        """Rename a file, over another one if there is one."""

    def admin(self) -> httpx.BaseTransport:
        """The way to Envoy's administration interface."""


class LocalFolder:
    """A folder of this machine.

    Args:
        folder: Only its user may read it: it has the keys of engines.
    """

    is_here = True
    pause_seconds = 0.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.root = str(self._folder)
        self.doorman = str(self._folder / DOORMAN_SOCKET)

    def prepare(self) -> None:
        """Have the folder into which Envoy writes."""
        (self._folder / OWN_FOLDER).mkdir(exist_ok=True, mode=0o700, parents=True)

    def write(self, path: str, document: Any) -> None:
        """Rename a JSON file into place, which only this user may read."""
        write_private(self._folder / path, json.dumps(document), over=True)

    def state(self, path: str) -> FileState | None:
        """What is known of a file; None = it is not there."""
        try:
            found = (self._folder / path).stat()
        except FileNotFoundError:
            return None
        return FileState(found.st_ino, found.st_size)

    def read(self, path: str, start: int, stop: int) -> bytes:
        """The bytes of a regular file from one offset up to another, or to its end."""
        return read_part(self._folder / path, start, stop)

    def rename(self, path: str, target: str) -> None:
        """Rename a file, over another one if there is one."""
        (self._folder / path).replace(self._folder / target)

    def admin(self) -> httpx.BaseTransport:
        """The Unix socket of the administration interface, which only this user reaches."""
        # Reading all authorities takes 40 ms, and this is done several times a second.
        no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx.HTTPTransport(uds=str(self._folder / ADMIN_SOCKET), verify=no_tls)
