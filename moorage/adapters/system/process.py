"""This process: its interpreter, user and garbage collector; a search process with a time limit."""

import gc
import json
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.releases.requester import Requester, one_line

INTERPRETER = (sys.executable, "-P")
"""Begins each command that runs our own modules. `-P`: a `tasks.py` or `secrets.py` of the folder
where a person works is not ours, and must not be imported."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Variable with the meaning of that flag, for processes that a library starts."""


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector inside the block.

    A full collection visits every object of a large fleet's snapshot. At 20,000 hosts that takes
    longer than the placement of a model, and frees nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def command_line_user() -> Requester:
    """The user of this process, by user id; environment variables are ignored."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = f"uid {number}"
    return Requester(user=one_line(user), host=one_line(socket.gethostname()))


SEARCH_SECONDS = 5.0
"""Time limit, which includes some ten milliseconds to start the process."""

_PROGRAM = (
    "import json, re, sys\n"
    "pattern, text = json.load(sys.stdin)\n"
    "sys.exit(0 if re.search(pattern, text) else 3)\n"
)
_NOT_THERE = 3


def has_match(pattern: str, text: str, seconds: float = SEARCH_SECONDS) -> bool | None:
    """Whether a valid regular expression matches somewhere in a text.

    It runs in a process: the library `regex` has a time limit too, but a hostile pattern would take
    hundreds of MiB of the flow's memory meanwhile.

    Returns:
        None when the search exceeded the time limit, or its process failed, such as out of memory.
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
