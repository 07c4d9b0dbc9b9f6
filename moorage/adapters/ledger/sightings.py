"""Which hosts are out of sight, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Engine, delete, insert, select

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import HOSTS, SIGHTINGS
from moorage.adapters.ledger.transitions import utc


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
