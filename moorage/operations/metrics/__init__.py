"""Metrics: what the ledger knows of releases, as counts, states and targets to scrape."""
