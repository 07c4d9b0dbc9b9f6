"""Engines that run: their HTTP interface, their arguments, their caches."""
