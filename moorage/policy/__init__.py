"""Policies: the rules of a site, and the check of a run's request against them.

`moorage/adapters/files/policy_file.py` reads the file; every flow checks it in `tasks/policy.py`.
"""
