"""Workloads in the ledger: written down before they are started, struck out once they are gone."""

from __future__ import annotations

from sqlalchemy import Engine, delete, insert

from moorage.adapters.ledger.database import gate
from moorage.adapters.ledger.tables import WORKLOADS
from moorage.launch import Workload


class Workloads:
    """What releases have started, or are about to start."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def put(self, release: str, workload: Workload) -> None:
        """Write a workload down, or replace what is known about it."""
        with gate(self._engine) as connection:
            connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == workload.name))
            connection.execute(
                insert(WORKLOADS).values(
                    name=workload.name, release=release, workload=workload.model_dump(mode="json")
                )
            )

    def drop(self, name: str) -> None:
        """Strike a workload out. Nothing happens when it is not there."""
        with gate(self._engine) as connection:
            connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == name))
