"""Connections to Docker daemons without a client, for reading: of many hosts that costs a fifth.

A path without a version is answered in the daemon's newest one, so no version is requested before.
"""

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from moorage.adapters.docker.daemon_answer import AnswerReader
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonLimits, decode
from moorage.common.units import MIB
from moorage.inventory.access import DOCKER_SOCKET, LOCAL, Access, parse_access

CONNECT_SECONDS = 5
MOST_BYTES = 16 * MIB
"""Of an answer. A container takes a few KiB."""

LIMITS = JsonLimits(size=MOST_BYTES, entries=1_000_000)

OK, NOT_FOUND = 200, 404


def as_docker_would() -> Access:
    """The daemon of `DOCKER_HOST` and related variables, else the default socket."""
    address = os.environ.get("DOCKER_HOST") or f"unix://{DOCKER_SOCKET}"
    folder = os.environ.get("DOCKER_CERT_PATH", "")
    if os.environ.get("DOCKER_TLS_VERIFY"):
        folder = folder or os.path.expanduser("~/.docker")
    return Access(address=address, certificates=folder if address.startswith("tcp:") else "")


class Daemon(NamedTuple):
    """An open connection to a daemon, what it is called there, and its answers."""

    connection: socket.socket
    host: str
    answers: AnswerReader


@contextmanager
def connection(address: str, seconds: int) -> Iterator[Daemon]:
    """A connection to a daemon, by its address as in the fleet; each whole answer has so long.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED` or `HOST_UNAUTHORIZED`, as
            `client.daemon_failures`.
    """
    access = parse_access(address)
    try:
        access = as_docker_would() if access.scheme == LOCAL else access
        host = access.address.partition("://")[2] if access.scheme == "tcp" else "docker"
        with _connected(access) as opened:
            opened.settimeout(seconds)
            yield Daemon(opened, host, AnswerReader(opened, seconds, MOST_BYTES))
    except (OSError, ValueError) as error:
        from moorage.adapters.docker.errors import reach_failure  # noqa: PLC0415  (imports docker)

        raise reach_failure(error, access.address) from error


def get(daemon: Daemon, path: str) -> Any:
    """The answer to a GET request; None where there is no such thing."""
    daemon.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {daemon.host}\r\n\r\n".encode())
    status, reason, body = daemon.answers.read()
    if status == NOT_FOUND:
        return None
    if status != OK:
        raise ValueError(f"{status} {reason}: {body[:300].decode(errors='replace')}")
    return decode(body, LIMITS)


def _connected(access: Access) -> socket.socket:
    if access.scheme == "ssh":
        from moorage.adapters.ssh import TUNNELS  # noqa: PLC0415  (few hosts need it)

        return _connected_to_socket(str(TUNNELS.socket(access)))
    if access.scheme == "unix":
        return _connected_to_socket(access.socket)
    tls = _tls(access.certificates) if access.certificates else None
    opened = socket.create_connection((access.machine, access.port), CONNECT_SECONDS)
    try:
        return tls.wrap_socket(opened, server_hostname=access.machine) if tls else opened
    except BaseException:
        opened.close()
        raise


def _connected_to_socket(path: str) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(CONNECT_SECONDS)
        opened.connect(path)
    except BaseException:
        opened.close()
        raise
    return opened


@lru_cache
def _tls(folder: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
    except OSError as error:
        from moorage.adapters.docker.errors import NO_CERTIFICATES  # noqa: PLC0415  (as above)

        detail = f"{folder}: {error.strerror or error}"
        raise Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=NO_CERTIFICATES) from error
    return context
