"""Who listens on the ports of this machine."""

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

import psutil


def is_listening(pid: int, port: int | None) -> bool:
    """Whether a process listens on a port of this machine."""
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    listening = (one.laddr for one in sockets if one.status == psutil.CONN_LISTEN and one.laddr)
    return any(address.port == port for address in listening)


def listeners(endpoint: str) -> Iterator[int | None]:
    """Ids of the processes that listen at an endpoint; None = it belongs to another user."""
    url = urlsplit(endpoint)
    with suppress(psutil.AccessDenied):  # not every system shows them
        for one in psutil.net_connections("tcp"):
            if one.status != psutil.CONN_LISTEN or not one.laddr or one.laddr.port != url.port:
                continue
            if one.laddr.ip == url.hostname or ip_address(one.laddr.ip).is_unspecified:
                yield one.pid


def named(pid: int | None) -> str:
    """A process in words, as `listeners` gives it."""
    if pid is None:
        return "a process of another user"
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.NoSuchProcess:
        return f"process {pid}"
