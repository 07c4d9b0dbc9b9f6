"""The ledger: SQL that holds releases, claims, workloads and locks. SQLite or PostgreSQL."""

from moorage.adapters.ledger.ledger import Ledger

__all__ = ["Ledger"]
