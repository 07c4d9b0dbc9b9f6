"""Which TCP ports of this machine are taken."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTEN = "0A"


def ports_in_use(address: str, low: int, high: int) -> set[int]:
    """Ports on which something listens, and those of a range that are bound: a server that starts.

    A port on which nothing but closed connections linger is free. Linux keeps these for a minute
    (TIME_WAIT) and lets servers bind it all the same: all set SO_REUSEADDR.

    Args:
        address: Where a port of the range would be bound.
        low: First port of the range.
        high: Last port of the range.
    """
    listening, lingering = set[int](), set[int]()
    for port, listens in _connections():
        (listening if listens else lingering).add(port)
    bound = {
        port
        for port in range(low, high + 1)
        if not _can_bind(address, port, again=port in lingering)
    }
    return listening | bound


def _connections() -> Iterator[tuple[int, bool]]:
    """The own port of each connection, and whether somebody listens there.

    Linux tells them in tables. psutil would also look through the files of every process, to say
    whose they are; on a machine with many engines that takes longer than all the rest of a survey.
    """
    if not TABLES[0].exists():
        for one in psutil.net_connections(kind="tcp"):
            if one.laddr:
                yield one.laddr.port, one.status == psutil.CONN_LISTEN
        return
    for table in TABLES:
        if table.exists():  # not every kernel has IPv6
            yield from map(_listed, table.read_text().splitlines()[1:])


def _listed(row: str) -> tuple[int, bool]:
    """The second column is the own address with its port in hexadecimal, the fourth the state."""
    columns = row.split()
    return int(columns[1].rpartition(":")[2], 16), columns[3] == LISTEN


def _can_bind(address: str, port: int, *, again: bool) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        if again:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
