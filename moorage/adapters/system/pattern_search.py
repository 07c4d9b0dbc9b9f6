"""Searches a text for a user's regular expression, with a limit of time.

Python's `re` backtracks: `(a+)+$` takes hours on 40 letters, holds the interpreter's lock, and
cannot be stopped from another thread. So the search runs in a process of its own, which is killed.

The library `regex` has a time-out, but no limit of memory: `(a|aa)+$` takes 450 MiB in two seconds
on 4 MB of text. Here only the process of the search can run out of memory, never the flow.
"""

from __future__ import annotations

import json
import subprocess
import sys

SEARCH_SECONDS = 5.0
"""Includes the start of the process, some ten milliseconds."""

_PROGRAM = (
    "import json, re, sys\n"
    "pattern, text = json.load(sys.stdin)\n"
    "sys.exit(0 if re.search(pattern, text) else 3)\n"
)
_NOT_THERE = 3


def has_match(pattern: str, text: str, seconds: float = SEARCH_SECONDS) -> bool | None:
    """Whether a pattern is somewhere in a text.

    Args:
        pattern: Regular expression that compiles; empty = found everywhere.
        text: The text to search.
        seconds: Limit for the search.

    Returns:
        None when it took longer, or used up the memory of its process.
    """
    if not pattern:
        return True
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=json.dumps([pattern, text]).encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return {0: True, _NOT_THERE: False}.get(done.returncode)
