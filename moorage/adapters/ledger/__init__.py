"""The ledger in SQLite or PostgreSQL: releases, claims, workloads, gateways, locks and more."""

from functools import cached_property

from sqlalchemy import select

from moorage.adapters.ledger.activity_log import ActivityLog
from moorage.adapters.ledger.claims import Claims
from moorage.adapters.ledger.database import open_database, reading
from moorage.adapters.ledger.gateways import ApiKeys, Gateways, Usages
from moorage.adapters.ledger.locks import Locks
from moorage.adapters.ledger.observations import Measurements, ReconcileCounts, Repairs, Sightings
from moorage.adapters.ledger.overviews import Overviews
from moorage.adapters.ledger.releases import Releases, Workloads
from moorage.adapters.ledger.routes import Routes
from moorage.adapters.ledger.tables import GATE

__all__ = ["Ledger"]


class Ledger:
    """All parts of the ledger in one database; raises as `open_database`."""

    def __init__(self, url: str) -> None:
        self._engine = open_database(url)
        self.releases = Releases(self._engine)
        self.overviews = Overviews(self._engine)
        self.activity = ActivityLog(self._engine)
        self.routes = Routes(self._engine, self.releases)
        self.claims = Claims(self._engine)
        self.workloads = Workloads(self._engine)
        self.measurements = Measurements(self._engine)
        self.repairs = Repairs(self._engine)
        self.reconcile_counts = ReconcileCounts(self._engine)
        self.sightings = Sightings(self._engine)
        self.locks = Locks(self._engine)
        self.gateways = Gateways(self._engine)
        self.api_keys = ApiKeys(self._engine)
        self.usage = Usages(self._engine)

    @cached_property
    def identity(self) -> str:
        """The unique id of this ledger. Its workloads carry it as a label."""
        with reading(self._engine) as connection:
            return str(connection.scalar(select(GATE.c.identity)))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
