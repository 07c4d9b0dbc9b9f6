"""Envoy as the gateway: its files, its administration socket, its process."""
