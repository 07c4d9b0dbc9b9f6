"""Runbooks: each flow chains tasks and reads like prose.

`dry_run.py` has the same chains up to the first effect, also for commands, since it needs no
Prefect.
"""
