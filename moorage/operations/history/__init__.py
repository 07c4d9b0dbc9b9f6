"""Releases beside each other: what differs, which one to go back to, what is meant to run."""
