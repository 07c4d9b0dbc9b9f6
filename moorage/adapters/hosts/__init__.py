"""Hosts: what is on them, and the processes that run there."""
