"""Clients of Docker and Podman daemons: connections, time-outs, streams, errors as failures."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from moorage.adapters.docker import sdk
from moorage.adapters.docker.connection import READ_SECONDS, as_docker_would
from moorage.adapters.docker.errors import reach_failure
from moorage.adapters.ssh import TUNNELS
from moorage.common.failures import Cause
from moorage.common.versions import version_key
from moorage.inventory.access import LOCAL, Access, parse_access
from moorage.inventory.checks import OLDEST_API

ASK_SECONDS = 10
"""Limit for a daemon's first answer, its version."""

_OWN = threading.local()

CONFLICT = 409
"""Status for a name, image or volume that is in use."""

SILENCE_SECONDS = 10.0
"""How long a stream may be silent before the other side is checked."""

MISSES = 3
"""Failed checks in a row before giving up: a daemon that unpacks a large layer is also slow."""

MOST_EVENTS = 1000
"""Most items of a stream that wait."""

T = TypeVar("T")
Events: TypeAlias = queue.Queue[tuple[T] | BaseException | None]


def connect(access: Access, read_seconds: int = READ_SECONDS) -> sdk.DockerClient:
    """A client for this thread: the underlying sessions are not thread-safe.

    Raises:
        Failure: When an SSH tunnel cannot be opened.
        DockerException: When the daemon does not answer.
    """
    clients: dict[tuple[str, int], sdk.DockerClient] = _OWN.__dict__.setdefault("clients", {})
    arguments = _arguments(access)
    key = (str(arguments["base_url"]), read_seconds)
    if key not in clients:
        clients[key] = _open(arguments, read_seconds)
    return clients[key]


def forget_clients() -> None:
    """Drop this thread's clients: a restarted daemon may have another version."""
    _OWN.__dict__.pop("clients", None)


def _arguments(access: Access) -> dict[str, Any]:
    if access.scheme == LOCAL:
        return _arguments(as_docker_would())
    if access.scheme == "ssh":
        return {"base_url": f"unix://{TUNNELS.socket(access)}"}
    if access.scheme == "unix":
        return {"base_url": access.address}
    return {"base_url": access.address, "tls": _tls(access.certificates)}


def _tls(folder: str) -> sdk.TLSConfig | bool:
    if not folder:
        return False
    pair = (f"{folder}/cert.pem", f"{folder}/key.pem")
    return sdk.TLSConfig(client_cert=pair, ca_cert=f"{folder}/ca.pem", verify=True)


def _open(arguments: dict[str, Any], read_seconds: int) -> sdk.DockerClient:
    """A client of the newest API version that both sides support."""
    from moorage.adapters.docker.limited_client import LimitedClient  # noqa: PLC0415  (as `sdk`)

    client = partial(LimitedClient, **arguments)
    with closing(client(version=OLDEST_API, timeout=min(read_seconds, ASK_SECONDS))) as probe:
        info = probe.api.version(api_version=False)
    bounds = (info.get("MinAPIVersion", OLDEST_API), info.get("ApiVersion", OLDEST_API))
    newest = sdk.DEFAULT_DOCKER_API_VERSION
    version = max(min(bounds[1], newest, key=version_key), bounds[0], key=version_key)
    return client(version=version, timeout=read_seconds)


@contextmanager
def daemon(address: str, read_seconds: int = READ_SECONDS) -> Iterator[sdk.DockerClient]:
    """A client of a daemon; `local` means the daemon that Docker's own client would use.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED` or `HOST_UNAUTHORIZED`, by the daemon's
            message; `LAUNCH_REFUSED` for an unexpected answer.
    """
    access = parse_access(address)
    with daemon_failures(access, Cause.LAUNCH_REFUSED):
        yield connect(access, read_seconds)


@contextmanager
def daemon_failures(access: Access, refused: Cause = Cause.RUNTIME_UNAVAILABLE) -> Iterator[None]:
    """Raise a daemon's errors as failures, as `daemon` does; `refused` for an unexpected answer.

    When the daemon is lost, this thread's clients are dropped.
    """
    try:
        yield
    except sdk.APIError as error:
        raise reach_failure(error, access.address, refused) from error
    except sdk.DAEMON_ERRORS as error:
        forget_clients()
        raise reach_failure(error, access.address) from error


def is_name_taken(error: sdk.APIError) -> bool:
    """Whether a container was refused because its name is in use."""
    # Podman calls it an internal error.
    return error.status_code == CONFLICT or "already in use" in str(error.explanation)


def follow(
    stream: Callable[[], Iterable[T]], ask: Callable[[], object], seconds: float = math.inf
) -> Iterator[T]:
    """The items of a stream as they arrive.

    Args:
        stream: Opens the stream. A daemon thread reads it, abandoned if the other side is lost.
        ask: Checks that the other side is alive, and raises otherwise.
        seconds: How long the whole stream may take.

    Raises:
        BaseException: The exception of the stream, or the last one of `ask`.
        TimeoutError: When the stream does not end in time.
    """
    events: Events[T] = queue.Queue(MOST_EVENTS)
    ended, until = threading.Event(), time.monotonic() + seconds
    threading.Thread(target=_read, args=(stream, events, ended), daemon=True).start()
    try:
        while (event := _next_event(events, ask, until)) is not None:
            if isinstance(event, BaseException):
                raise event
            yield from event
    finally:
        ended.set()
        with suppress(queue.Empty):
            events.get_nowait()  # the thread may wait for room


def _next_event(
    events: Events[T], ask: Callable[[], object], until: float
) -> tuple[T] | BaseException | None:
    misses_in_row = 0
    while (left := until - time.monotonic()) > 0:
        with suppress(queue.Empty):
            return events.get(timeout=min(SILENCE_SECONDS, left))
        try:
            ask()
            misses_in_row = 0
        except Exception:
            misses_in_row += 1
            if misses_in_row == MISSES:
                raise
    raise TimeoutError


def _read(stream: Callable[[], Iterable[T]], events: Events[T], ended: threading.Event) -> None:
    try:
        for item in stream():
            events.put((item,))
            if ended.is_set():
                return
        events.put(None)
    except BaseException as error:
        events.put(error)
