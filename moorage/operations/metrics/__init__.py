"""Metrics from the ledger: counts and states of releases, and targets to scrape."""
