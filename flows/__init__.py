"""Runbooks: each flow chains tasks and reads like prose."""
