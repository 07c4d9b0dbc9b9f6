"""Observations of flows: measured memory, repairs of releases, hosts that do not answer."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from moorage.adapters.ledger.database import LedgerPart, gate, reading
from moorage.adapters.ledger.tables import (
    CLAIMS,
    HOSTS,
    MEASUREMENTS,
    RECONCILE_COUNTS,
    RELEASES,
    REPAIRS,
    SIGHTINGS,
    replace_rows,
)
from moorage.inventory.access import machine_of
from moorage.inventory.claims import Capacity
from moorage.memory.calibration import CalibrationKey, Measurement
from moorage.operations.reconcile.cluster_state import RepairRecord
from moorage.operations.reconcile.counts import ReconcileCount
from moorage.readiness.engine_facts import Measured, combine_measured
from moorage.releases.states import FINAL


class Measurements(LedgerPart):
    """The measurements of all releases."""

    def record(self, release: str, measurements: Sequence[Measurement]) -> None:
        """Write the measurements of a release; they replace its earlier measurements."""
        with gate(self._engine) as connection:
            own = MEASUREMENTS.c.release == release
            replace_rows(connection, MEASUREMENTS, own, [_values(one) for one in measurements])

    def latest(self, key: CalibrationKey) -> Measurement | None:
        """The measurement of the newest release with these settings: the most of its workloads."""
        same = [MEASUREMENTS.c[name] == value for name, value in key.model_dump().items()]
        query = select(MEASUREMENTS).where(*same).order_by(MEASUREMENTS.c.id.desc())
        with reading(self._engine) as connection:
            newest = connection.execute(query.limit(1)).first()
            if newest is None:
                return None
            rows = connection.execute(query.where(MEASUREMENTS.c.release == newest.release)).all()
            found = [measurement_of(row, key) for row in rows]
        measured = combine_measured(one.measured for one in found) or Measured()
        return found[-1].model_copy(update={"measured": measured})

    def of(self, architecture: str) -> tuple[Measurement, ...]:
        """Measurements of an architecture: the newest for each key, newest first."""
        query = select(MEASUREMENTS).where(MEASUREMENTS.c.architecture == architecture)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(MEASUREMENTS.c.id.desc())).all()
            keys = dict.fromkeys(key_of(row) for row in rows)
        return tuple(found for key in keys if (found := self.latest(key)))


def key_of(row: Row[Any]) -> CalibrationKey:
    """The settings of a measurement, from its row."""
    return CalibrationKey(**{name: row._mapping[name] for name in CalibrationKey.model_fields})


def _values(one: Measurement) -> dict[str, Any]:
    plain = one.model_dump(mode="json")
    return {**plain.pop("key"), **plain, "measured_at": one.measured_at}


def measurement_of(row: Row[Any], key: CalibrationKey) -> Measurement:
    """The measurement of a workload with the settings `key`, from its row."""
    return Measurement(
        workload=row.workload,
        key=key,
        measured=Measured.from_record(row.measured),
        predicted=row.predicted,
        release=row.release,
        measured_at=row.measured_at,
    )


class Repairs(LedgerPart):
    """Records of the reconcile flow, one for each release that it repaired or probed."""

    def all(self) -> tuple[RepairRecord, ...]:
        """All records."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(REPAIRS).order_by(REPAIRS.c.release))
            return tuple(record_of(row) for row in rows)

    def of(self, release: str) -> RepairRecord:
        """The record of a release; an empty record if it has none."""
        with reading(self._engine) as connection:
            row = connection.execute(select(REPAIRS).where(REPAIRS.c.release == release)).first()
            return record_of(row) if row else RepairRecord(release=release)

    def keep(self, record: RepairRecord) -> None:
        """Write a record; it replaces the release's earlier record."""
        with gate(self._engine) as connection:
            own = REPAIRS.c.release == record.release
            replace_rows(connection, REPAIRS, own, [record.model_dump()])

    def tidy(self) -> None:
        """Delete the records of releases in a final state."""
        ended = select(RELEASES.c.id).where(RELEASES.c.state.in_(FINAL))
        with gate(self._engine) as connection:
            connection.execute(delete(REPAIRS).where(REPAIRS.c.release.in_(ended)))


def record_of(row: Row[Any]) -> RepairRecord:
    """A record from its row."""
    return RepairRecord(**row._mapping)


class ReconcileCounts(LedgerPart):
    """How often the reconcile flow took each kind of action, since the ledger counts them."""

    def add(self, counts: Sequence[ReconcileCount]) -> None:
        """Add the counts of one run."""
        with gate(self._engine) as connection:
            for one in counts:
                sums = {name: RECONCILE_COUNTS.c[name] + getattr(one, name) for name in _SUMMED}
                own = update(RECONCILE_COUNTS).where(RECONCILE_COUNTS.c.kind == one.kind)
                if not connection.execute(own.values(**sums, latest=one.latest)).rowcount:
                    connection.execute(insert(RECONCILE_COUNTS).values(**one.model_dump()))

    def all(self) -> tuple[ReconcileCount, ...]:
        """All counts, by kind."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(RECONCILE_COUNTS).order_by(RECONCILE_COUNTS.c.kind))
            return tuple(count_of(row) for row in rows)


_SUMMED = ("done", "not_done")


def count_of(row: Row[Any]) -> ReconcileCount:
    """A count from its row."""
    return ReconcileCount(**row._mapping)


class UnseenHosts(LedgerPart):
    """Hosts that did not answer, and all hosts that ever had claims until they are forgotten."""

    def unseen(self) -> dict[str, datetime]:
        """The hosts that do not answer, with the time of the first missed answer, in UTC."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(SIGHTINGS))
            return {row.host: row.unseen_since for row in rows}

    def keep(self, unseen: Mapping[str, tuple[datetime, str]], seen: set[str]) -> None:
        """Record the hosts that do not answer, with time and reason; forget those in `seen`."""
        if not (unseen or self.unseen().keys() & seen):
            return
        rows = [
            {"host": host, "unseen_since": since, "detail": detail}
            for host, (since, detail) in unseen.items()
        ]
        with gate(self._engine) as connection:
            replace_rows(connection, SIGHTINGS, SIGHTINGS.c.host.in_([*unseen, *seen]), rows)

    def known_hosts(self) -> dict[str, str]:
        """The address by name of every host that had claims."""
        with reading(self._engine) as connection:
            return {row.name: row.address for row in connection.execute(select(HOSTS))}

    def readdress(self, addresses: Mapping[str, str]) -> None:
        """Write how some of the known hosts are reached now: the address by name."""
        if not addresses:
            return
        with gate(self._engine) as connection:
            for name, address in addresses.items():
                values = {"machine": machine_of(address), "address": address}
                connection.execute(update(HOSTS).where(HOSTS.c.name == name).values(**values))

    def forget(self, names: Collection[str]) -> None:
        """Delete hosts on which nothing is claimed."""
        if not names:
            return
        with gate(self._engine) as connection:
            held = select(CLAIMS.c.host)
            for column in (HOSTS.c.name, SIGHTINGS.c.host):
                own = (column.in_(names), column.not_in(held))
                connection.execute(delete(column.table).where(*own))

    def capacities(self) -> dict[str, tuple[Capacity, ...]]:
        """Each host's capacities at its last claim; empty if an older moorage recorded the host."""
        with reading(self._engine) as connection:
            return {row.name: capacities_of(row) for row in connection.execute(select(HOSTS))}


def capacities_of(row: Row[Any]) -> tuple[Capacity, ...]:
    """The capacities of a host, from its row."""
    return tuple(map(Capacity.from_record, row.capacity))
