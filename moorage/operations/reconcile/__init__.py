"""Reconciling: bring ledger and hosts into agreement."""
