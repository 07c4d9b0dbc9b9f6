"""Ports of this machine on which somebody listens."""

from __future__ import annotations

from pathlib import Path

import psutil

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTEN = "0A"


def listening_ports() -> set[int]:
    """TCP ports on which somebody listens, on whatever address.

    Linux tells them in a table. psutil would also look through the files of every process, to say
    who listens; on a machine with many engines that takes longer than all the rest of a survey.
    """
    try:
        return {port for table in TABLES for port in _listed(Path(table))}
    except (OSError, ValueError, IndexError):
        found = psutil.net_connections(kind="tcp")
        return {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN and one.laddr}


def _listed(table: Path) -> set[int]:
    """The second column is the own address with its port in hexadecimal, the fourth the state."""
    if not table.exists():  # a kernel without IPv6
        return set()
    rows = (line.split() for line in table.read_text().splitlines()[1:])
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTEN}
