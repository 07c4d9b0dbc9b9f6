"""Reconciling: bringing ledger and hosts into agreement."""
