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
    """The user of this process by its user id. The environment is ignored."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = f"uid {number}"
    return Requester(user=one_line(user), host=one_line(socket.gethostname()))
