"""Reads from Docker daemons that need no client: one of a thousand hosts costs a third of that.

A path without a version is answered in the daemon's newest one, so no version is asked before.
"""

import json
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.transfer.http_answer import TimedAnswer
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.engines.launch import LABEL_LEDGER, LABEL_RELEASE, Workload
from moorage.inventory.access import DOCKER_SOCKET, LOCAL, Access, parse_access

CONNECT_SECONDS = 5
LIST_SECONDS, OBSERVE_SECONDS = 15, 60
"""How long a whole answer may take; a daemon that unpacks an image is slow."""

MOST_BYTES = 16 * MIB
"""Of an answer. A container takes a few KiB."""

OK, NOT_FOUND = 200, 404


def list_containers(address: str) -> list[dict[str, Any]]:
    """All containers of a daemon, as it lists them; raises as `_connection`."""
    with _connection(address, LIST_SECONDS) as connection:
        listed: list[dict[str, Any]] = _get(connection, "/containers/json?all=1")
        return listed


def observe_containers(address: str, workloads: Iterable[Workload]) -> list[Observation]:
    """The states of containers of one daemon; raises as `_connection`."""
    with _connection(address, OBSERVE_SECONDS) as connection:
        return [
            _observation(_get(connection, f"/containers/{one.name}/json"), one) for one in workloads
        ]


def as_docker_would() -> Access:
    """The daemon of `DOCKER_HOST` and related variables, else the default socket."""
    address = os.environ.get("DOCKER_HOST") or f"unix://{DOCKER_SOCKET}"
    folder = os.environ.get("DOCKER_CERT_PATH", "")
    if os.environ.get("DOCKER_TLS_VERIFY"):
        folder = folder or os.path.expanduser("~/.docker")
    return Access(address=address, certificates=folder if address.startswith("tcp:") else "")


def _observation(container: dict[str, Any] | None, workload: Workload) -> Observation:
    """A container that waits for its restart counts as running, and shows how it ended.

    A foreign one of the same name does not count.
    """
    labels = (container or {}).get("Config", {}).get("Labels") or {}
    own = (labels.get(LABEL_RELEASE), labels.get(LABEL_LEDGER))
    if container is None or own != (workload.release, workload.ledger):
        return Observation(running=False, detail="the container is gone")
    state, restarts = container["State"], int(container["RestartCount"])
    running = state["Status"] in ("running", "paused", "restarting")
    killed = bool(state.get("OOMKilled"))
    exited = state["Status"] == "exited"
    words = ["the container exited" if exited else f"the container is {state['Status']}"]
    if restarts:
        words.append(f"Docker restarted it {restarts} times")
    if output := "it ran out of memory" if killed else state.get("Error"):
        words.append(output)
    return Observation(
        running=running,
        exit_code=None if running and state["Status"] != "restarting" else state["ExitCode"],
        out_of_memory=killed,
        restarts=restarts,
        detail=": ".join(words),
    )


@contextmanager
def _connection(address: str, seconds: int) -> Iterator[HTTPConnection]:
    """A connection to a daemon, by its address as in the fleet.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED` or `HOST_UNAUTHORIZED`, as
            `client.daemon_failures`.
    """
    access = parse_access(address)
    try:
        with closing(_opened(access)) as connection:
            connection.connect()
            connection.sock.settimeout(seconds)
            connection.response_class = partial(TimedAnswer, seconds=seconds)  # type: ignore[assignment]
            yield connection
    except (OSError, HTTPException, ValueError) as error:
        from moorage.adapters.docker.errors import reach_failure  # noqa: PLC0415  (imports docker)

        raise reach_failure(error, access.address) from error


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
        from moorage.adapters.docker.errors import NO_CERTIFICATES  # noqa: PLC0415  (as above)

        detail = f"{folder}: {error.strerror or error}"
        raise Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=NO_CERTIFICATES) from error
    return context


def _get(connection: HTTPConnection, path: str) -> Any:
    """The answer to a GET request; None where there is no such thing."""
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(f"its answer has more than {MOST_BYTES:,} bytes")
    if answer.status == NOT_FOUND:
        return None
    if answer.status != OK:
        raise ValueError(f"{answer.status} {answer.reason}: {body[:300].decode(errors='replace')}")
    return json.loads(body)
