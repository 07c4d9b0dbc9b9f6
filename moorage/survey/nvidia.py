"""NVIDIA's accelerators, as `nvidia-smi` lists them."""

from __future__ import annotations

import csv
import re

from moorage.placement.snapshot import Accelerator
from moorage.units import MIB

NVIDIA_QUERY = ("index", "uuid", "name", "memory.total", "memory.free", "driver_version")
RUNTIME = re.compile(r"CUDA Version:\s*(\d+\.\d+)")
"""In the heading of plain `nvidia-smi`: the newest CUDA that the driver was made for."""


def nvidia_accelerators(listed: str, heading: str) -> tuple[Accelerator, ...]:
    """Accelerators from the answer to `NVIDIA_QUERY`.

    Args:
        listed: Lines of comma-separated values without units, memory in MiB.
        heading: What plain `nvidia-smi` prints.

    Returns:
        One for each line that is whole; a device that has fallen off the bus tells no memory, and
        one that shares the host's RAM has none to tell.
    """
    told = RUNTIME.search(heading)
    rows = (dict(zip(NVIDIA_QUERY, row, strict=False)) for row in _rows(listed))
    return tuple(
        Accelerator(
            type="cuda",
            index=int(row["index"]),
            uuid=row["uuid"],
            name=row["name"],
            memory_total=int(row["memory.total"]) * MIB,
            memory_free=int(row["memory.free"]) * MIB,
            driver=row["driver_version"],
            runtime_version=told[1] if told else "",
        )
        for row in rows
        if _is_whole(row)
    )


def _rows(listed: str) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in csv.reader(listed.splitlines())]


def _is_whole(row: dict[str, str]) -> bool:
    numbers = ("index", "memory.total", "memory.free")
    return len(row) == len(NVIDIA_QUERY) and all(row[name].isdigit() for name in numbers)
