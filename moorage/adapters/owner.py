"""Who holds a lock: a process, told apart from any later one with the same number."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from moorage.values import Value


class Owner(Value):
    """A process.

    Attributes:
        machine: Boot of the machine and namespace of process numbers; empty = unknown.
        pid: Process number there.
        started_at: Start of the process, seconds since the epoch.
        note: What it is, for people.
    """

    machine: str
    pid: int
    started_at: float
    note: str = ""


def this_process(note: str = "") -> Owner:
    """The calling process."""
    process = psutil.Process()
    return Owner(machine=_machine(), pid=process.pid, started_at=process.create_time(), note=note)


def is_gone(owner: Owner) -> bool:
    """Whether an owner is surely gone; False when that cannot be told from here."""
    if not owner.machine or owner.machine != _machine():
        return False
    return not is_alive(owner.pid, owner.started_at)


def is_alive(pid: int, started_at: float) -> bool:
    """Whether a process of this machine lives; one that waits to be reaped does not."""
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started_at) > 1:
            return False
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
