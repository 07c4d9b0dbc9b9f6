"""Which machine each host's name stands for, as long as something is claimed there.

A name is what claims are kept under. Under a second name one machine would be given away twice,
and under one name two machines would share their room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, Engine, delete, insert, select

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import CLAIMS, HOSTS, SIGHTINGS
from moorage.adapters.ledger.transitions import utc
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


class Sightings:
    """Hosts that could not be looked at, and all that were ever claimed on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def unseen(self) -> dict[str, datetime]:
        """Since when hosts are out of sight, UTC."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(SIGHTINGS))
            return {row.host: utc(row.unseen_since) for row in rows}

    def keep(self, unseen: Mapping[str, tuple[datetime, str]], seen: set[str]) -> None:
        """Write down who is out of sight since when and why, and who is not any more."""
        before = self.unseen()
        if not (unseen or before.keys() & seen):
            return
        with gate(self._engine) as connection:
            gone = SIGHTINGS.c.host.in_([*unseen, *seen])
            connection.execute(delete(SIGHTINGS).where(gone))
            rows = [
                {"host": host, "unseen_since": since, "detail": detail}
                for host, (since, detail) in unseen.items()
            ]
            if rows:
                connection.execute(insert(SIGHTINGS), rows)

    def known_hosts(self) -> dict[str, str]:
        """Address by name, of every host on which something was ever claimed."""
        with reading(self._engine) as connection:
            return {row.name: row.address for row in connection.execute(select(HOSTS))}
