"""Which machine each host's name stands for, as long as something is claimed there.

A name is what claims are kept under. Under a second name one machine would be given away twice,
and under one name two machines would share their room.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select

from moorage.adapters.ledger.tables import CLAIMS, HOSTS
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import LOCAL, parse_access
from moorage.inventory.snapshot import FleetSnapshot


def must_be_the_same_machines(connection: Connection, fleet: FleetSnapshot) -> None:
    """Hold the names of a fleet against those under which something is claimed.

    Raises:
        Failure: `BAD_FLEET` when a name was changed, or stands for another machine now.
    """
    now = {host.name: parse_access(host.address).machine for host in fleet.hosts}
    machines = set(now.values())
    for name, before in _claimed(connection).items():
        if name not in now and before in machines:
            raise _renamed(connection, name)
        if now.get(name, before) != before:
            raise _moved(connection, name, before, now[name])


def remember_machines(connection: Connection, fleet: FleetSnapshot, names: Iterable[str]) -> None:
    """Keep which machines some names stand for."""
    hosts = [fleet.host(name) for name in set(names)]
    rows = [
        {
            "name": host.name,
            "machine": parse_access(host.address).machine,
            "address": host.address,
        }
        for host in hosts
    ]
    if rows:
        connection.execute(delete(HOSTS).where(HOSTS.c.name.in_([row["name"] for row in rows])))
        connection.execute(insert(HOSTS), rows)


def _claimed(connection: Connection) -> dict[str, str]:
    """Machine by name, where something is claimed; names that are read from the index alone."""
    names = connection.scalars(select(CLAIMS.c.host).distinct()).all()
    known = {row.name: row.machine for row in connection.execute(select(HOSTS))}
    return {name: known.get(name, LOCAL) for name in sorted(names)}


def _holder(connection: Connection, name: str) -> str:
    query = select(CLAIMS.c.release).where(CLAIMS.c.host == name).order_by(CLAIMS.c.id)
    return str(connection.scalar(query.limit(1)))


def _renamed(connection: Connection, name: str) -> Failure:
    release = _holder(connection, name)
    return Failure(
        Cause.BAD_FLEET,
        f"{release} holds claims on host '{name}', which this fleet does not name",
        suggestion=f"Name the host '{name}' in the fleet file, or retire {release} first.",
    )


def _moved(connection: Connection, name: str, before: str, now: str) -> Failure:
    release = _holder(connection, name)
    return Failure(
        Cause.BAD_FLEET,
        f"{release} holds claims on host '{name}' at {before}; this fleet has it at {now}",
        suggestion=f"Give the other machine a name of its own, or retire {release} first.",
    )
