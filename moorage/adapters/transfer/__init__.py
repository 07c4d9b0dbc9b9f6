"""Bringing models to hosts that are other machines."""
