"""What a process got from where it was started, besides its variables and files."""

import os
from contextlib import suppress
from pathlib import Path

RIGHTS = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Cpus_allowed:", "Mems_allowed:")
"""How the lines of `/proc/PID/status` begin that tell what it may do, and where."""

FILES = ("cgroup", "limits", "loginuid", "oom_score_adj")
LINKS = ("root", *(f"ns/{kind}" for kind in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")))


def surroundings(pid: int) -> tuple[str, ...]:
    """Rights, limits, cgroup, namespaces, login and priority of a process.

    Two processes of which these are equal can take each other's work.

    Raises:
        OSError: When it has ended, or is another user's.
    """
    folder = Path(f"/proc/{pid}")
    lines = (folder / "status").read_text().splitlines()
    found = [line for line in lines if line.startswith(RIGHTS)]
    for name in FILES:
        with suppress(FileNotFoundError):  # not every kernel has each
            found.append((folder / name).read_text())
    links = (os.readlink(folder / name) for name in LINKS)
    return (*found, *links, str(os.getpriority(os.PRIO_PROCESS, pid)))
