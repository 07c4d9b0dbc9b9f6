"""Connections to Docker daemons without a client: a third of its time for each request.

A daemon answers a path without a version in its newest version, so no version is requested first.
"""

import json
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

from moorage.adapters.docker.errors import NO_CERTIFICATES, reach_failure
from moorage.adapters.transfer.http_answer import TimedAnswer
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonLimits, decode
from moorage.common.units import MIB
from moorage.inventory.access import DOCKER_SOCKET, LOCAL, Access, parse_access

CONNECT_SECONDS = 5
MOST_BYTES = 16 * MIB
"""Size limit of an answer. A container takes a few KiB."""

LIMITS = JsonLimits(size=MOST_BYTES, entries=1_000_000)

MOST_MESSAGE = 2000
"""Most characters of a daemon's message."""

NOT_FOUND, REFUSED = 404, 300
"""The status for what is not there, and the first one that is no success."""

FRAME = struct.Struct(">4xL")
"""Header of a frame of a container's output: its length."""


class DaemonError(ValueError):
    """A request that a daemon did not carry out.

    Attributes:
        status: HTTP status of the answer.
        explanation: The daemon's message.
    """

    def __init__(self, status: int, explanation: str) -> None:
        super().__init__(f"{status}: {explanation}")
        self.status, self.explanation = status, explanation


def as_docker_would() -> Access:
    """The daemon of `DOCKER_HOST` and related variables, else the default socket."""
    address = os.environ.get("DOCKER_HOST") or f"unix://{DOCKER_SOCKET}"
    folder = os.environ.get("DOCKER_CERT_PATH", "")
    if os.environ.get("DOCKER_TLS_VERIFY"):
        folder = folder or os.path.expanduser("~/.docker")
    return Access(address=address, certificates=folder if address.startswith("tcp:") else "")


@contextmanager
def connection(address: str, seconds: int) -> Iterator[HTTPConnection]:
    """A connection to a daemon, by its address as in the fleet; `seconds` limits each whole answer.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED` or `HOST_UNAUTHORIZED`, as
            `client.daemon_failures`.
    """
    access = parse_access(address)
    try:
        with closing(_opened(access)) as opened:
            limit(opened, seconds)
            yield opened
    except (OSError, HTTPException, ValueError) as error:
        raise reach_failure(error, access.address) from error


def limit(daemon: HTTPConnection, seconds: float) -> None:
    """Set how long each whole answer may take from now on; connects if there is no connection."""
    if daemon.sock is None:
        daemon.connect()
    daemon.sock.settimeout(seconds)
    daemon.response_class = partial(TimedAnswer, seconds=seconds)  # type: ignore[assignment]


def get(daemon: HTTPConnection, path: str) -> Any:
    """The answer to a GET request; None for status 404."""
    body = get_body(daemon, path)
    return None if body is None else decode(body, LIMITS)


def get_body(daemon: HTTPConnection, path: str) -> bytes | None:
    """The body of the answer to a GET request; None for status 404."""
    try:
        return _ask(daemon, "GET", path)
    except DaemonError as error:
        if error.status == NOT_FOUND:
            return None
        raise


def send(daemon: HTTPConnection, verb: str, path: str, content: Any = None) -> Any:
    """The answer to a request that changes something, which may carry JSON; None = it is empty.

    Raises:
        DaemonError: When the daemon does not carry it out.
    """
    body = _ask(daemon, verb, path, None if content is None else json.dumps(content))
    return decode(body, LIMITS) if body else None


def _ask(daemon: HTTPConnection, verb: str, path: str, content: str | None = None) -> bytes:
    try:
        daemon.request(verb, path, content, {"Content-Type": "application/json"} if content else {})
        answer = daemon.getresponse()
        body = answer.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise ValueError(f"its answer has more than {MOST_BYTES:,} bytes")
    except BaseException:
        daemon.close()  # without a whole answer it would take no other request
        raise
    if answer.status >= REFUSED:
        raise DaemonError(answer.status, _message(body) or answer.reason)
    return body


def _message(body: bytes) -> str:
    """The message of an error, which daemons send as JSON."""
    try:
        return str(decode(body, LIMITS)["message"])[:MOST_MESSAGE]
    except (ValueError, KeyError, TypeError):
        return body[:MOST_MESSAGE].decode(errors="replace")


def _opened(access: Access) -> HTTPConnection:
    access = as_docker_would() if access.scheme == LOCAL else access
    if access.scheme == "ssh":
        from moorage.adapters.ssh import TUNNELS  # noqa: PLC0415  (few hosts need it)

        return _SocketConnection(str(TUNNELS.socket(access)))
    if access.scheme == "unix":
        return _SocketConnection(access.socket)
    if not access.certificates:
        return HTTPConnection(access.machine, access.port, timeout=CONNECT_SECONDS)
    context = _tls(access.certificates)
    return HTTPSConnection(access.machine, access.port, timeout=CONNECT_SECONDS, context=context)


class _SocketConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@lru_cache
def _tls(folder: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    except OSError as error:
        detail = f"{folder}: {error.strerror or error}"
        raise Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=NO_CERTIFICATES) from error
    return context
