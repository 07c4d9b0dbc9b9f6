"""Readiness: probes and loads that prove a model, and the diagnosis of a failed start's log."""
