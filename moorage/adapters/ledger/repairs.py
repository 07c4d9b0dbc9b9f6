"""Records of the reconcile flow: repairs of releases, and hosts that do not answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Row, delete, insert, select

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import HOSTS, RELEASES, REPAIRS, SIGHTINGS
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.releases.states import FINAL


class Repairs:
    """One record for each release that was ever repaired or probed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> tuple[RepairRecord, ...]:
        """Every record."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(REPAIRS).order_by(REPAIRS.c.release))
            return tuple(record_of(row) for row in rows)

    def of(self, release: str) -> RepairRecord:
        """The record of a release; an empty one where there is none."""
        with reading(self._engine) as connection:
            row = connection.execute(select(REPAIRS).where(REPAIRS.c.release == release)).first()
            return record_of(row) if row else RepairRecord(release=release)

    def keep(self, record: RepairRecord) -> None:
        """Write a record; it replaces the earlier one."""
        with gate(self._engine) as connection:
            connection.execute(delete(REPAIRS).where(REPAIRS.c.release == record.release))
            connection.execute(insert(REPAIRS).values(record.model_dump()))

    def tidy(self) -> None:
        """Drop the records of releases that have ended."""
        ended = select(RELEASES.c.id).where(RELEASES.c.state.in_(FINAL))
        with gate(self._engine) as connection:
            connection.execute(delete(REPAIRS).where(REPAIRS.c.release.in_(ended)))


def record_of(row: Row[Any]) -> RepairRecord:
    """A record from its row."""
    return RepairRecord.model_validate(dict(row._mapping))


class Sightings:
    """Hosts that did not answer, and all hosts that ever had claims."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def unseen(self) -> dict[str, datetime]:
        """The hosts that do not answer, with the time of their last answer, UTC."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(SIGHTINGS))
            return {row.host: row.unseen_since for row in rows}

    def keep(self, unseen: Mapping[str, tuple[datetime, str]], seen: set[str]) -> None:
        """Record the hosts that do not answer, with time and reason, and those that do again."""
        if not (unseen or self.unseen().keys() & seen):
            return
        rows = [
            {"host": host, "unseen_since": since, "detail": detail}
            for host, (since, detail) in unseen.items()
        ]
        with gate(self._engine) as connection:
            hosts = [*unseen, *seen]
            connection.execute(delete(SIGHTINGS).where(SIGHTINGS.c.host.in_(hosts)))
            if rows:
                connection.execute(insert(SIGHTINGS), rows)

    def known_hosts(self) -> dict[str, str]:
        """Address by name, of every host that ever had claims."""
        with reading(self._engine) as connection:
            return {row.name: row.address for row in connection.execute(select(HOSTS))}
