"""Prefect's server and API: login, guard, errors, approvals."""
