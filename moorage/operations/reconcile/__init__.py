"""Reconciling: what the ledger says and what the hosts show, made one again."""
