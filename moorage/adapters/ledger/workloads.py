"""Workloads in the ledger: written before their start, deleted after their end."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, delete, insert, select

from moorage.adapters.ledger.database import gate
from moorage.adapters.ledger.tables import RELEASES, WORKLOADS
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Workload
from moorage.releases.states import FINAL


class Workloads:
    """The workloads of all releases."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, release: str, workload: Workload) -> None:
        """Write a workload before its start.

        Raises:
            Failure: `LOST_LOCK` when its release has ended: a flow that was suspended for too long
                must not start what others have undone.
        """
        with gate(self._engine) as connection:
            state = connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == release))
            if state in FINAL:
                raise Failure(Cause.LOST_LOCK, f"{release} is {state}: {workload.name} not started")
            _write(connection, release, workload)

    def put(self, release: str, workload: Workload) -> None:
        """Write a workload, or replace it."""
        with gate(self._engine) as connection:
            _write(connection, release, workload)

    def drop(self, name: str) -> None:
        """Delete a workload, if it is there."""
        with gate(self._engine) as connection:
            connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == name))


def _write(connection: Connection, release: str, workload: Workload) -> None:
    connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == workload.name))
    connection.execute(
        insert(WORKLOADS).values(
            name=workload.name, release=release, workload=workload.model_dump(mode="json")
        )
    )
