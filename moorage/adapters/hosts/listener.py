"""Something that listens on a host as an engine would, for a moment."""

from __future__ import annotations

import contextlib
import inspect
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from uuid import uuid4

from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect
from moorage.adapters.docker.helper import LABEL_HELPER, MEMORY, run_helper
from moorage.adapters.hosts import reachability as greeting
from moorage.inventory.access import Access

STOP_SECONDS = 20
PYTHON = ("python3", "-I", "-c", inspect.getsource(greeting))


@contextlib.contextmanager
def listening_here(bind: str, port: int) -> Iterator[None]:
    """Listen on this machine.

    Raises:
        OSError: When that address or port cannot be taken.
    """
    server = greeting.listen(bind, port)
    threading.Thread(target=greeting.greet, args=(server,), daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # closing alone would not wake who waits on it
        server.close()


@contextlib.contextmanager
def listening_there(access: Access, image: str, bind: str, port: int) -> Iterator[None]:
    """Listen on another host, on a port that Docker publishes as it does an engine's.

    The container ends and is removed by itself, should this machine lose the host.

    Raises:
        APIError: When Docker cannot publish it.
        DockerException: When the daemon does not answer.
    """
    container = connect(access, STOP_SECONDS).containers.create(
        image,
        entrypoint=[PYTHON[0]],
        command=[*PYTHON[1:], "listen", str(port)],
        name=f"moorage-check-{uuid4().hex[:12]}",
        labels={LABEL_HELPER: "check"},
        ports={f"{port}/tcp": (bind, port)},
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=MEMORY,
        auto_remove=True,
    )
    try:
        container.start()
        yield
    finally:
        with contextlib.suppress(DockerException, RequestException):
            _remove(access, str(container.id))


def reach_from(access: Access, image: str, places: Sequence[tuple[str, int]]) -> list[str]:
    """Why a host does not reach listeners; empty for those that it reaches.

    Args:
        access: The way to its daemon.
        image: The helper's image; it is there.
        places: Address and port of each listener.

    Raises:
        Failure: When the helper does not run.
        DockerException: When the daemon does not answer.
    """
    seconds = int(greeting.PATIENCE_SECONDS + greeting.CONNECT_SECONDS) + STOP_SECONDS
    command = (*PYTHON, "reach", json.dumps(places))
    said = run_helper(access, image, command, purpose="check", seconds=seconds)
    return [str(trouble) for trouble in json.loads(said.splitlines()[-1])]


def _remove(access: Access, identity: str) -> None:
    with contextlib.suppress(APIError):
        connect(access, STOP_SECONDS).api.remove_container(identity, force=True)
