"""Envoy as the gateway: its files, its administration interface, its process."""
