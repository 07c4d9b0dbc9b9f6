"""What it means when a machine cannot be reached at all, in whatever words it is told."""

from __future__ import annotations

import re

from moorage.common.failures import Cause

NO_NAME = "No machine has that name: correct `address`, or make the name known (DNS, /etc/hosts)."
NOTHING_LISTENS = (
    "The machine answers, but nothing listens there: start Docker (or `sshd`), or correct the port."
)
SILENT = "See whether the machine is up and not overloaded, and whether a firewall is between."

NETWORK_ERRORS: tuple[tuple[str, Cause, str], ...] = (
    ("Could not resolve", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ("Failed to resolve", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ("Name or service not known", Cause.RUNTIME_UNAVAILABLE, NO_NAME),
    ("Connection refused", Cause.RUNTIME_UNAVAILABLE, NOTHING_LISTENS),
    ("timed out", Cause.RUNTIME_UNAVAILABLE, SILENT),
    ("No route to host", Cause.RUNTIME_UNAVAILABLE, SILENT),
    ("Network is unreachable", Cause.RUNTIME_UNAVAILABLE, SILENT),
)
"""Texts of Python and of `ssh`, and what they mean; the first that matches counts."""

_NESTING = re.compile(r""": |, '|, \"""")


def plain(text: str) -> str:
    """The first line of an error; of one that wraps others only the innermost words."""
    first = text.partition("\n")[0]
    if "ConnectionPool(" not in first:
        return first[:300]
    inner = _NESTING.split(first)[-1].rstrip("\"')")
    return inner + ")" * (inner.count("(") - inner.count(")"))
