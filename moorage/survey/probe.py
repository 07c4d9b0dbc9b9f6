"""The probe: a shell script that shows what a host has, and the reading of its answer.

It needs nothing but `sh`, `cat`, `grep`, `date` and `df`; the drivers' own tools are asked where
they are there.
"""

from __future__ import annotations

import re

from moorage.survey.facts import HostFacts
from moorage.survey.nvidia import NVIDIA_QUERY, nvidia_accelerators
from moorage.survey.routes import read_routes
from moorage.units import KIB

STORE = "/moorage-store"
"""Where the probe sees the disk that models are kept on."""

SCRIPT = f"""\
section() {{ echo "== $1"; shift; "$@" 2>&1; }}
section meminfo cat /proc/meminfo
section cores grep -c ^processor /proc/cpuinfo
section tcp cat /proc/net/tcp /proc/net/tcp6
section routes cat /proc/net/route
section clock date +%s
section disk df -kP {STORE}
command -v nvidia-smi >/dev/null || exit 0
section nvidia nvidia-smi --query-gpu={",".join(NVIDIA_QUERY)} --format=csv,noheader,nounits
section nvidia-runtime nvidia-smi
section nvidia-topology nvidia-smi topo -m
exit 0
"""

LISTENING = "0A"
"""The state of a socket that listens, in `/proc/net/tcp`."""


def read_probe(answer: str) -> HostFacts:
    """The facts in a probe's answer.

    Raises:
        ValueError: When it is not the answer of a probe.
    """
    told = _sections(answer)
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB$", told.get("meminfo", ""), re.MULTILINE))
    try:
        total, free = int(memory["MemTotal"]), int(memory["MemAvailable"])
        cores = int(told["cores"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"the probe told neither memory nor processors: {answer[:200]}") from error
    return HostFacts(
        cores=cores,
        ram_total=total * KIB,
        ram_free=free * KIB,
        ports=_listening(told.get("tcp", "")),
        disk_free=_free_disk(told.get("disk", "")),
        clock=_number(told.get("clock", "")),
        accelerators=nvidia_accelerators(told.get("nvidia", ""), told.get("nvidia-runtime", "")),
        routes=read_routes(told.get("routes", "")),
        topology=told.get("nvidia-topology", ""),
    )


def _sections(answer: str) -> dict[str, str]:
    parts = re.split(r"^== ([\w-]+)\n", answer, flags=re.MULTILINE)
    return {name: content.strip() for name, content in zip(parts[1::2], parts[2::2], strict=True)}


def _listening(table: str) -> tuple[int, ...]:
    rows = (line.split() for line in table.splitlines())
    found = {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if len(row) > 3 and row[3] == LISTENING and ":" in row[1]
    }
    return tuple(sorted(found))


def _free_disk(table: str) -> int | None:
    """POSIX's form of `df`: a heading, then device, size, used, available, ..."""
    last = table.splitlines()[-1].split() if table else []
    return int(last[3]) * KIB if len(last) >= 6 and last[3].isdigit() else None


def _number(text: str) -> float | None:
    return float(text) if text.isdigit() else None
