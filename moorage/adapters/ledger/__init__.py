"""The ledger in SQLite or PostgreSQL: releases, claims, workloads, gateways, locks and more.

Each part is imported at its first use: a reader of callers' usage need not import releases.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def _part(module: str, kind: str) -> Any:
    """A part of a ledger: a class of a module in this folder, imported at its first use."""

    def load(ledger: Ledger) -> LedgerPart:
        part: LedgerPart = getattr(import_module(f"{__name__}.{module}"), kind)(ledger._engine)
        return part

    return cached_property(load)


class Ledger:
    """All parts of the ledger in one database; raises as `open_database`."""

    releases: Releases = _part("releases", "Releases")
    overviews: Overviews = _part("overviews", "Overviews")
    activity: ActivityLog = _part("activity_log", "ActivityLog")
    routes: Routes = _part("routes", "Routes")
    claims: Claims = _part("claims", "Claims")
    workloads: Workloads = _part("releases", "Workloads")
    measurements: Measurements = _part("observations", "Measurements")
    repairs: Repairs = _part("observations", "Repairs")
    reconcile_counts: ReconcileCounts = _part("observations", "ReconcileCounts")
    unseen_hosts: UnseenHosts = _part("observations", "UnseenHosts")
    locks: Locks = _part("locks", "Locks")
    gateways: Gateways = _part("gateways", "Gateways")
    api_keys: ApiKeys = _part("gateways", "ApiKeys")
    usage: Usages = _part("gateways", "Usages")

    def __init__(self, url: str) -> None:
        self._engine = open_database(url)

    @cached_property
    def identity(self) -> str:
        """The unique id of this ledger. Its workloads carry it as a label."""
        with reading(self._engine) as connection:
            return str(connection.scalar(select(GATE.c.identity)))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
