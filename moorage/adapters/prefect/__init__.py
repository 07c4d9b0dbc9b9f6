"""Prefect: server and API, login, guard, errors, approvals, events, task runners."""
