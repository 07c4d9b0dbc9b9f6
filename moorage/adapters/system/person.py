"""The person at the command line: the operating system's user, and the machine."""

from __future__ import annotations

import os
import pwd
import socket

from moorage.releases.requester import Requester, one_line


def command_line_user() -> Requester:
    """Who runs this process, as the system knows it; what the environment says does not count."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = f"uid {number}"
    return Requester(user=one_line(user), host=one_line(socket.gethostname()))
