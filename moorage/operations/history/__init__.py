"""Releases compared, rolled back, and brought to a desired state."""
