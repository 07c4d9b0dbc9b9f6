"""Identity of processes: distinct from any later process with the same number."""

from __future__ import annotations

import os
from pathlib import Path

from moorage.adapters.hosts.supervisor import process_state
from moorage.common.values import Value


class Owner(Value):
    """A process.

    Attributes:
        machine: Boot of the machine and namespace of process numbers; empty = unknown.
        pid: Process number there.
        started_at: Start of the process in clock ticks since the boot; unlike a time of day, it
            stays the same when the clock is set.
        note: What it is, for people.
    """

    machine: str
    pid: int
    started_at: int
    note: str = ""


def this_process(note: str = "") -> Owner:
    """The calling process."""
    return owner_of(os.getpid(), note)


def owner_of(pid: int, note: str = "") -> Owner:
    """A process of this machine."""
    return Owner(machine=_machine(), pid=pid, started_at=process_state(pid)[1], note=note)


def has_ended(owner: Owner) -> bool:
    """Whether an owner has surely ended; False when this machine cannot know."""
    if not owner.machine or owner.machine != _machine():
        return False
    return not is_alive(owner.pid, owner.started_at)


def is_running(owner: Owner) -> bool:
    """Whether an owner surely runs on this machine; False when this machine cannot know."""
    if not owner.machine or owner.machine != _machine():
        return False
    return is_alive(owner.pid, owner.started_at)


def is_alive(pid: int, started: int) -> bool:
    """Whether a process of this machine lives; one that waits to be reaped does not."""
    state, start = process_state(pid)
    return state not in ("", "Z", "X") and start == started


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
