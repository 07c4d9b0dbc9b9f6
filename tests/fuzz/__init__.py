"""Hostile input by chance: `python -m tests.fuzz --seconds 60`."""
