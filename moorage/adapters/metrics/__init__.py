"""Metrics for Prometheus, from the ledger and from the gateways of this machine."""
