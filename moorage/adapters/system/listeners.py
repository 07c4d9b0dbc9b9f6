"""The ports of this machine, and who listens on them."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

LISTENING = "0A"
"""State of a socket in the kernel's tables. The probe of a host has the same constant; to import it
would load the vendors of accelerators into every command.
"""

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class TcpSocket(NamedTuple):
    """A TCP socket of this machine; `inode` identifies it."""

    port: int
    listens: bool
    inode: str


def tcp_sockets() -> Iterator[TcpSocket]:
    """All TCP sockets, from the kernel's tables.

    psutil would also read the files of every process to find the owners: with many engines that
    takes longer than the rest of a survey.
    """
    for table in filter(Path.exists, TABLES):  # not every kernel has IPv6
        for row in table.read_text().splitlines()[1:]:
            # Column 2 is the local address with its hexadecimal port, 4 the state, 10 the inode.
            columns = row.split()
            port = int(columns[1].rpartition(":")[2], 16)
            yield TcpSocket(port, columns[3] == LISTENING, columns[9])


def are_only_listeners(pids: Collection[int], port: int | None) -> bool:
    """Whether all sockets that listen on a port belong to some processes.

    It reads the files of these processes only, `listeners` those of all.
    """
    sought = {f"socket:[{one.inode}]" for one in tcp_sockets() if one.listens and one.port == port}
    own = set[str]()
    for pid in pids:
        with suppress(OSError):  # it is gone
            own |= set(map(_target, list(Path(f"/proc/{pid}/fd").iterdir())))
    return sought <= own


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


def _target(file: Path) -> str:
    with suppress(OSError):  # it is closed
        return os.readlink(file)
    return ""
