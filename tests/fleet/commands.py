"""Commands of this machine that the test fleet is made with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

NEEDED = ("dockerd", "ip", "iptables", "nsenter", "sshd", "unshare", "mkfs.ext4")


def missing() -> str:
    """Why no fleet can be made here; empty = it can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    absent = [name for name in NEEDED if not shutil.which(name)]
    return f"{', '.join(absent)} not installed (see .ci/run)" if absent else ""


def run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its output is in the error when it fails."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout}")
    return done


def mounts_below(folder: Path) -> list[str]:
    """Mounts that are left there, the deepest first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    places = [line.split()[1] for line in lines]
    return sorted((place for place in places if place.startswith(f"{folder}/")), reverse=True)
