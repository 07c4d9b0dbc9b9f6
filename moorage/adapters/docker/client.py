"""Clients of Docker daemons, near and far: how they connect, and how long they wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION as NEWEST_API
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env

from moorage.adapters.ssh.tunnels import Tunnels
from moorage.inventory.access import DOCKER_SOCKET, LOCAL, Access

CONNECT_SECONDS = 5
READ_SECONDS = 60
"""How long a daemon may be silent; creating a container from a large image takes a while."""

ASK_SECONDS = 10
"""The same for its first answer, about its version."""

OLDEST_API = "1.41"
"""Of Docker 20.10 and Podman 4; what is newer is asked for where the daemon has it."""

TUNNELS = Tunnels()
_OWN = threading.local()


def connect(access: Access, read_seconds: int = READ_SECONDS) -> docker.DockerClient:
    """A client for this thread; the underlying sessions are not made for several.

    Args:
        access: The way to the daemon.
        read_seconds: How long it may be silent.

    Raises:
        Failure: When an SSH tunnel cannot be made.
        DockerException: When the daemon does not answer.
    """
    clients: dict[tuple[str, int], docker.DockerClient] = _OWN.__dict__.setdefault("clients", {})
    arguments = _arguments(access)
    key = (str(arguments["base_url"]), read_seconds)
    if key not in clients:
        clients[key] = _open(arguments, read_seconds)
    return clients[key]


def forget_clients() -> None:
    """Connect anew: a daemon that was restarted may be of another version."""
    _OWN.__dict__.pop("clients", None)


def _arguments(access: Access) -> dict[str, Any]:
    if access.scheme == LOCAL:
        return _as_docker_would()
    if access.scheme == "ssh":
        return {"base_url": f"unix://{TUNNELS.socket(access)}"}
    return {"base_url": access.address, "tls": _tls(access.certificates)}


def _as_docker_would() -> dict[str, Any]:
    """`DOCKER_HOST` and its companions, else the usual socket; a socket has no certificates."""
    address = os.environ.get("DOCKER_HOST") or f"unix://{DOCKER_SOCKET}"
    if address.startswith("ssh://"):
        return _arguments(Access(address=address))
    return {"base_url": address} if address.startswith("unix://") else dict(kwargs_from_env())


def _tls(folder: str) -> TLSConfig | bool:
    if not folder:
        return False
    pair = (f"{folder}/cert.pem", f"{folder}/key.pem")
    return TLSConfig(client_cert=pair, ca_cert=f"{folder}/ca.pem", verify=True)


def _open(arguments: dict[str, Any], read_seconds: int) -> docker.DockerClient:
    """A client of the newest version that both sides speak."""
    with closing(_client(arguments, OLDEST_API, min(read_seconds, ASK_SECONDS))) as asking:
        told = asking.api.version(api_version=False)
    theirs = (told.get("MinAPIVersion", OLDEST_API), told.get("ApiVersion", OLDEST_API))
    version = max(min(theirs[1], NEWEST_API, key=_order), theirs[0], key=_order)
    return _client(arguments, version, read_seconds)


def _client(arguments: dict[str, Any], version: str, read_seconds: int) -> docker.DockerClient:
    """A client that neither proxies nor authorities of the environment concern."""
    client = docker.DockerClient(**arguments, version=version, timeout=read_seconds)
    client.api.trust_env = False
    if not str(arguments["base_url"]).startswith("unix:"):
        client.api.send = _connecting_quickly(client.api.send)  # type: ignore[method-assign]
    return client


def _connecting_quickly(send: Callable[..., Any]) -> Callable[..., Any]:
    """The library has one time for both; a host that is gone must not take a slow answer's.

    What is sent in pieces, such as a model, is left alone: the time to connect is also that for
    each piece, and a disk there may be slow.
    """

    def send_quickly(request: Any, **options: Any) -> Any:
        if "Transfer-Encoding" in request.headers:
            return send(request, **options)
        return send(request, **options | {"timeout": (CONNECT_SECONDS, options.get("timeout"))})

    return send_quickly


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
