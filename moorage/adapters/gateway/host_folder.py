"""The folder of a gateway whose Envoy runs on a host of the fleet."""

import json
from typing import Any

import httpx

from moorage.adapters.gateway.envoy_folder import FileState
from moorage.adapters.gateway.host_channel import MOST_BYTES, HostChannel
from moorage.common.failures import Cause, Failure
from moorage.gateway.programs import HOST_FOLDER

PAUSE_SECONDS = 1.0


class HostFolder:
    """Volumes of the host; an Envoy on that host cannot reach the doorman of this machine.

    Args:
        channel: Access to the files on that host.
    """

    root = HOST_FOLDER
    doorman = ""
    is_here = False
    pause_seconds = PAUSE_SECONDS

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel

    def prepare(self) -> None:
        """Do nothing: Envoy writes into its own volume."""

    def write(self, path: str, document: Any) -> None:
        """Replace a JSON file atomically; only Envoy's user may read it."""
        self._ask("write", json.dumps(document).encode(), path=path)

    def state(self, path: str) -> FileState | None:
        """Identity and size of a file; None = it does not exist."""
        header, _ = self._channel.ask("state", path=path)
        if header.get("absent"):
            return None
        _require(header)
        return FileState(_number(header, "inode"), _number(header, "bytes"))

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Bytes of a regular file from one offset up to another or to its end."""
        return self._ask("read", path=path, start=start, stop=stop)

    def rename(self, path: str, target: str) -> None:
        """Rename a file, and replace the target if it exists."""
        self._ask("rename", path=path, target=target)

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        self._ask("remove", path=path)

    def admin(self) -> httpx.BaseTransport:
        """Transport to Envoy's administration interface, through the program on its host."""
        return HostAdmin(self._channel)

    def _ask(self, do: str, body: bytes = b"", **fields: Any) -> bytes:
        header, content = self._channel.ask(do, body, **fields)
        _require(header)
        return content


class HostAdmin(httpx.BaseTransport):
    """Carries requests to Envoy's administration interface on its host."""

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raise `httpx.ConnectError` when Envoy does not answer."""
        target = request.url.raw_path.decode()
        header, body = self._channel.ask(
            "ask", method=request.method, target=target, most=MOST_BYTES
        )
        if "status" not in header:
            raise httpx.ConnectError(str(header.get("trouble")), request=request)
        return httpx.Response(_number(header, "status"), stream=httpx.ByteStream(body))


def _require(header: dict[str, Any]) -> None:
    if "trouble" in header:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"files of the gateway: {header['trouble']}")


def _number(header: dict[str, Any], name: str) -> int:
    """An integer of an answer; a compromised host may leave it out."""
    found = header.get(name)
    if not isinstance(found, int):
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"the host of the gateway answers without {name}")
    return found
