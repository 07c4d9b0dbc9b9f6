"""Which TCP ports of this machine are taken."""

from __future__ import annotations

import errno
import socket

import psutil


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
    for connection in psutil.net_connections(kind="tcp"):
        if connection.laddr:
            seen = listening if connection.status == psutil.CONN_LISTEN else lingering
            seen.add(connection.laddr.port)
    bound = {
        port
        for port in range(low, high + 1)
        if not _can_bind(address, port, again=port in lingering)
    }
    return listening | bound


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
