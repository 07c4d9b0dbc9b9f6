"""Searching a text for somebody's regular expression, never for longer than it may take.

Python's `re` backtracks: `(a+)+$` takes hours on 40 letters, holds the interpreter's lock all the
time, and cannot be ended from another thread. So the search runs in a process of its own, which
can be killed.
"""

from __future__ import annotations

import json
import subprocess
import sys

SEARCH_SECONDS = 5.0
"""Start of the process included, which takes some ten milliseconds."""

_PROGRAM = (
    "import json, re, sys\n"
    "pattern, text = json.load(sys.stdin)\n"
    "sys.exit(0 if re.search(pattern, text) else 3)\n"
)
_NOT_THERE = 3


def is_found(pattern: str, text: str, seconds: float = SEARCH_SECONDS) -> bool | None:
    """Whether a pattern is somewhere in a text.

    Args:
        pattern: Regular expression that compiles; empty = found everywhere.
        text: Where it is looked for.
        seconds: How long that may take.

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
