"""Measurements in the ledger: the memory of starts, by their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, Row, delete, insert, select

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import MEASUREMENTS
from moorage.memory.calibration import CalibrationKey, Measurement
from moorage.readiness.engine_facts import Measured, combine_measured


class Measurements:
    """The measurements of all releases."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def record(self, release: str, measurements: Sequence[Measurement]) -> None:
        """Write the measurements of a release; they replace its earlier ones."""
        with gate(self._engine) as connection:
            connection.execute(delete(MEASUREMENTS).where(MEASUREMENTS.c.release == release))
            if measurements:
                connection.execute(insert(MEASUREMENTS), [_values(one) for one in measurements])

    def latest(self, key: CalibrationKey) -> Measurement | None:
        """The newest release with these settings; of its workloads the most."""
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
        """Measurements of an architecture: the newest of each settings, newest first."""
        query = select(MEASUREMENTS).where(MEASUREMENTS.c.architecture == architecture)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(MEASUREMENTS.c.id.desc())).all()
            keys = dict.fromkeys(key_of(row) for row in rows)
        return tuple(found for key in keys if (found := self.latest(key)))


def key_of(row: Row[Any]) -> CalibrationKey:
    """The settings of a measurement, from its row."""
    names = CalibrationKey.model_fields
    return CalibrationKey(**{name: row._mapping[name] for name in names})


def _values(one: Measurement) -> dict[str, Any]:
    plain = one.model_dump(mode="json")
    return {**plain.pop("key"), **plain, "measured_at": one.measured_at}


def measurement_of(row: Row[Any], key: CalibrationKey) -> Measurement:
    """The measurement of a workload with some settings, from its row."""
    known = Measured.model_fields.keys()
    facts = {name: value for name, value in row.measured.items() if name in known}
    return Measurement(
        workload=row.workload,
        key=key,
        measured=Measured.model_validate(facts),
        predicted=row.predicted,
        release=row.release,
        measured_at=row.measured_at,
    )
