"""Properties that a process inherits from its parent, besides variables and open files."""

import os
from contextlib import suppress
from pathlib import Path

RIGHTS = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Cpus_allowed:", "Mems_allowed:")
"""Prefixes of the lines of `/proc/PID/status` about rights, processors and memory nodes."""

FILES = ("cgroup", "limits", "loginuid", "oom_score_adj")
LINKS = ("root", *(f"ns/{kind}" for kind in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")))


def surroundings(pid: int) -> tuple[str, ...]:
    """Rights, limits, cgroup, namespaces, login and priority of a process.

    Processes with equal surroundings can do each other's work.

    Raises:
        OSError: When the process has exited, or belongs to another user.
    """
    folder = Path(f"/proc/{pid}")
    lines = (folder / "status").read_text().splitlines()
    found = [line for line in lines if line.startswith(RIGHTS)]
    for name in FILES:
        with suppress(FileNotFoundError):  # some kernels lack some of these files
            found.append((folder / name).read_text())
    links = (os.readlink(folder / name) for name in LINKS)
    return (*found, *links, str(os.getpriority(os.PRIO_PROCESS, pid)))
