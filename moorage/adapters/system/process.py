"""This process: the person who runs it, and its garbage collector."""

from __future__ import annotations

import gc
import os
import pwd
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.releases.requester import Requester, one_line


@contextmanager
def paused_collector() -> Iterator[None]:
    """No collection until the block ends.

    A full one walks every object of a large fleet's snapshot: at 20,000 hosts that takes longer
    than placing a model on it, and finds nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def command_line_user() -> Requester:
    """Who runs this process, as the system knows it; what the environment says does not count."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = f"uid {number}"
    return Requester(user=one_line(user), host=one_line(socket.gethostname()))
