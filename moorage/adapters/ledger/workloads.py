"""Workloads in the ledger: written down before they are started, struck out once they are gone."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, delete, insert, select

from moorage.adapters.ledger.database import gate
from moorage.adapters.ledger.tables import RELEASES, WORKLOADS
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Workload
from moorage.releases.states import FINAL


class Workloads:
    """What releases have started, or are about to start."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, release: str, workload: Workload) -> None:
        """Write down a workload that is about to be started.

        Raises:
            Failure: `LOST_LOCK` when its release has ended: a flow that stood still for too long
                must not start what others have undone, and taken the place of.
        """
        with gate(self._engine) as connection:
            state = connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == release))
            if state in FINAL:
                raise Failure(Cause.LOST_LOCK, f"{release} is {state}: {workload.name} not started")
            _write(connection, release, workload)

    def put(self, release: str, workload: Workload) -> None:
        """Write a workload down, or replace what is known about it."""
        with gate(self._engine) as connection:
            _write(connection, release, workload)

    def drop(self, name: str) -> None:
        """Strike a workload out. Nothing happens when it is not there."""
        with gate(self._engine) as connection:
            connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == name))


def _write(connection: Connection, release: str, workload: Workload) -> None:
    connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == workload.name))
    connection.execute(
        insert(WORKLOADS).values(
            name=workload.name, release=release, workload=workload.model_dump(mode="json")
        )
    )
