"""The ledger: releases, claims, workloads, measurements, locks in SQLite or PostgreSQL."""

from moorage.adapters.ledger.ledger import Ledger

__all__ = ["Ledger"]
