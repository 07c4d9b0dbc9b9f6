"""Metrics for Prometheus: out of the ledger, and out of the gateways of this machine."""
