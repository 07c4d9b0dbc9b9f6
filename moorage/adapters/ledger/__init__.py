"""The ledger in SQLite or PostgreSQL: releases, claims, workloads, gateways, locks and more.

Each part is imported at its first use: a reader of callers' usage need not import releases.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from sqlalchemy import select

from moorage.adapters.ledger.database import LedgerPart, open_database, reading
from moorage.adapters.ledger.tables import GATE

if TYPE_CHECKING:
    from moorage.adapters.ledger.activity_log import ActivityLog
    from moorage.adapters.ledger.claims import Claims
    from moorage.adapters.ledger.gateways import ApiKeys, Gateways, Usages
    from moorage.adapters.ledger.locks import Locks
    from moorage.adapters.ledger.observations import (
        Measurements,
        ReconcileCounts,
        Repairs,
        UnseenHosts,
    )
    from moorage.adapters.ledger.overviews import Overviews
    from moorage.adapters.ledger.releases import Releases, Workloads
    from moorage.adapters.ledger.routes import Routes

__all__ = ["Ledger"]

PARTS = {
    "releases": "releases:Releases",
    "overviews": "overviews:Overviews",
    "activity": "activity_log:ActivityLog",
    "routes": "routes:Routes",
    "claims": "claims:Claims",
    "workloads": "releases:Workloads",
    "measurements": "observations:Measurements",
    "repairs": "observations:Repairs",
    "reconcile_counts": "observations:ReconcileCounts",
    "unseen_hosts": "observations:UnseenHosts",
    "locks": "locks:Locks",
    "gateways": "gateways:Gateways",
    "api_keys": "gateways:ApiKeys",
    "usage": "gateways:Usages",
}
"""Module and class of each part, in this folder."""


class Ledger:
    """All parts of the ledger in one database; raises as `open_database`."""

    releases: Releases
    overviews: Overviews
    activity: ActivityLog
    routes: Routes
    claims: Claims
    workloads: Workloads
    measurements: Measurements
    repairs: Repairs
    reconcile_counts: ReconcileCounts
    unseen_hosts: UnseenHosts
    locks: Locks
    gateways: Gateways
    api_keys: ApiKeys
    usage: Usages

    def __init__(self, url: str) -> None:
        self._engine = open_database(url)

    def __getattr__(self, name: str) -> LedgerPart:
        """Import and return a part at its first use."""
        if name not in PARTS:
            raise AttributeError(name)
        module, _, kind = PARTS[name].partition(":")
        part: LedgerPart = getattr(import_module(f"{__name__}.{module}"), kind)(self._engine)
        setattr(self, name, part)
        return part

    @cached_property
    def identity(self) -> str:
        """The unique id of this ledger. Its workloads carry it as a label."""
        with reading(self._engine) as connection:
            return str(connection.scalar(select(GATE.c.identity)))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
