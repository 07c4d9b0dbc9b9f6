"""Connections to Docker daemons without a client: a quarter of its time for each request.

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
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
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

READ_SECONDS = 60
"""How long a daemon may be silent: while it unpacks a large image it lists the others slowly."""

NOT_FOUND = 404
SUCCESS = range(200, 300)

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


class Answer(dict[str, Any]):
    """A JSON object of a daemon; a missing key is the daemon's error."""

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"its answer has no {key}")


class Daemon:
    """A connection to a daemon: it is opened for the first request, and again after it was lost.

    All methods raise `OSError`, `HTTPException` or `ValueError` for a daemon that is lost or
    answers nonsense, and `DaemonError` for one that does not carry out a request.

    Args:
        opened: The connection, which need not be connected.
        seconds: How long each answer may take, once it is connected.
    """

    def __init__(self, opened: HTTPConnection, seconds: float) -> None:
        self._http, self._seconds = opened, seconds
        opened.auto_open = 0  # it would connect without our limit

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._http.sock is not None

    def limit(self, seconds: float) -> None:
        """Set how long each answer may take from now on."""
        self._seconds = seconds

    def get(self, path: str) -> Answer:
        """The object that answers a GET request."""
        return _object(decode(self.get_body(path), LIMITS))

    def get_list(self, path: str) -> list[Answer]:
        """The list of objects that answers a GET request."""
        found = decode(self.get_body(path), LIMITS)
        if not isinstance(found, list):
            raise ValueError("its answer is no list")
        return list(map(_object, found))

    def find(self, path: str) -> Answer | None:
        """The object that answers a GET request; None = it is not there."""
        try:
            return self.get(path)
        except DaemonError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def get_body(self, path: str) -> bytes:
        """The body of the answer to a GET request."""
        return self._ask("GET", path)

    def send(self, verb: str, path: str, content: Any = None) -> Answer:
        """The answer to a request that changes something, which may carry JSON."""
        body = self._ask(verb, path, None if content is None else json.dumps(content))
        return _object(decode(body, LIMITS)) if body else Answer()

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._http.close()

    def _connect(self) -> None:
        try:
            self._http.connect()
        except TimeoutError:
            raise TimeoutError(f"connection timed out after {CONNECT_SECONDS} s") from None

    def _ask(self, verb: str, path: str, content: str | None = None) -> bytes:
        http = self._http
        try:
            if not self.is_open:
                self._connect()
            http.sock.settimeout(self._seconds)
            http.response_class = partial(TimedAnswer, seconds=self._seconds)  # type: ignore[assignment]
            http.request(verb, path, content, {"Content-Type": "application/json"})
            answer = http.getresponse()
            body = answer.read(MOST_BYTES + 1)
            if len(body) > MOST_BYTES:
                raise ValueError(f"its answer has more than {MOST_BYTES:,} bytes")
            if answer.length:
                raise IncompleteRead(body, answer.length)
        except BaseException:
            self.close()  # without a whole answer it would take no other request
            raise
        if answer.status not in SUCCESS:
            raise DaemonError(answer.status, _message(body) or answer.reason)
        return body


@contextmanager
def connection(address: str, seconds: float) -> Iterator[Daemon]:
    """A connection to a daemon, by its address as in the fleet; `seconds` limits each answer.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED` or `HOST_UNAUTHORIZED`, as
            `client.daemon_failures`; what `Daemon` raises in the block becomes one of them.
    """
    access = parse_access(address)
    try:
        with closing(Daemon(_opened(access), seconds)) as daemon:
            yield daemon
    except (OSError, HTTPException, ValueError) as error:
        raise reach_failure(error, access.address) from error


def _object(found: Any) -> Answer:
    if not isinstance(found, dict):
        raise ValueError("its answer is no object")
    return Answer(found)


def _message(body: bytes) -> str:
    """The message of an error, which daemons send as JSON."""
    try:
        return str(_object(decode(body, LIMITS))["message"])[:MOST_MESSAGE]
    except ValueError:
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
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.settimeout(self.timeout)
            opened.connect(self._path)
        except BaseException:
            opened.close()
            raise
        self.sock = opened


@lru_cache
def _tls(folder: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    except OSError as error:
        detail = f"{folder}: {error.strerror or error}"
        raise Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=NO_CERTIFICATES) from error
    return context
