"""NVIDIA's accelerators, from the output of `nvidia-smi`."""

import csv
import re
from collections.abc import Iterable
from itertools import zip_longest

from moorage.common.printable import COLOUR
from moorage.common.units import MIB
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found

GPU = re.compile(r"^GPU(\d+)$")
NVLINK = re.compile(r"^NV\d+$")


def linked_groups(matrix: str) -> tuple[tuple[int, ...], ...]:
    """Indexes of two or more GPUs that NVLink joins, directly or through other GPUs, by group.

    Args:
        matrix: A heading, then a row for each device; cells are `X`, `NV18`, `PIX`, `SYS`, ...
    """
    # Some drivers underline the heading with escape codes.
    rows = [line.split() for line in COLOUR.sub("", matrix).splitlines()]
    heading = next((row for row in rows if row[:1] == ["GPU0"] and row[1:2] != ["X"]), [])
    columns = [(at, int(name[1])) for at, word in enumerate(heading) if (name := GPU.match(word))]
    indexes = {index for _, index in columns}
    pairs = []
    for row in rows:
        name = GPU.match(row[0]) if row else None
        if row is heading or not name or int(name[1]) not in indexes:
            continue
        linked = (i for at, i in columns if at + 1 < len(row) and NVLINK.match(row[at + 1]))
        pairs += [(int(name[1]), index) for index in linked]
    return groups_of(pairs)


def groups_of(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """The groups that pairs of indexes form, directly or through others, in ascending order."""
    joined: dict[int, set[int]] = {}
    for one, other in pairs:
        together = joined.get(one, {one}) | joined.get(other, {other})
        joined |= dict.fromkeys(together, together)
    return tuple(sorted({tuple(sorted(group)) for group in joined.values()}))


NVIDIA_QUERY = (
    *("index", "uuid", "name", "memory.total", "memory.free", "memory.used", "driver_version"),
    *("mig.mode.current", "compute_mode"),
)
CAPABILITY = re.compile(r"^(\d+), (\d+\.\d+)$", re.MULTILINE)
"""Index and compute capability. They are a query of their own, which old drivers do not know."""

RUNTIME = re.compile(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)")
"""The newest CUDA that the driver supports, in the heading of plain `nvidia-smi`. Since driver 610
it is the version of the driver's user-mode part (UMD)."""

NOT_REPORTED = ("[N/A]", "[Not Supported]", "N/A")
SHARES_RAM = re.compile(r"\b(GB10|Tegra|Xavier|Orin|Thor)\b")
"""Chips that use the host's RAM; any other chip that reports no memory is faulty."""

EXCLUSIVE, PROHIBITED = ("Exclusive_Process", "Exclusive_Thread"), "Prohibited"
"""Compute modes of devices that let in one process at a time, or none."""

FAULT = re.compile(r"Unknown Error|Unable to determine|GPU is lost|has failed|mismatch", re.I)


def nvidia_found(
    listed: str, heading: str, topology: str, ram: tuple[int, int], capabilities: str = ""
) -> Found:
    """The usable accelerators in the answer to `NVIDIA_QUERY`.

    A device that is off the bus, reports no memory, lets in no process, or is split by MIG is a
    trouble instead: of a split device, CUDA sees the parts only.

    Args:
        listed: Lines of comma-separated values without units, memory in MiB.
        heading: Output of plain `nvidia-smi`.
        topology: Output of `nvidia-smi topo -m`.
        ram: Total and free bytes of the host's RAM: the memory of chips that share it.
        capabilities: Lines of index and compute capability; others are ignored.
    """
    version = RUNTIME.search(heading)
    families = dict(CAPABILITY.findall(capabilities))
    accelerators, troubles, shared = [], [], False
    for row in _rows(listed):
        if trouble := _trouble(row):
            troubles.append(trouble)
        elif "uuid" in row:
            shares = row["memory.total"] in NOT_REPORTED
            shared |= shares
            family = families.get(row["index"], "")
            accelerators.append(
                _accelerator(row, version[1] if version else "", family, ram if shares else None)
            )
    return Found(
        accelerators=tuple(accelerators),
        troubles=tuple(troubles),
        unified_memory=shared,
        links=linked_groups(topology),
    )


def split_by_mig(index: int, name: str) -> str:
    """The trouble of a GPU that is split by MIG."""
    return (
        f"GPU {index} ({name}) is split by MIG, and parts are not placed on:"
        f" `nvidia-smi -i {index} -mig 0` makes it whole"
    )


def closed_to_all(index: int, name: str) -> str:
    """The trouble of a GPU whose compute mode lets in no process."""
    return (
        f"GPU {index} ({name}) lets in no process (compute mode Prohibited):"
        f" `nvidia-smi -i {index} -c DEFAULT` opens it"
    )


def _rows(listed: str) -> list[dict[str, str]]:
    """Each row as values by column name; any other line as a message.

    A row may lack the compute mode, which is then empty.
    """
    rows = csv.reader(listed.splitlines(), skipinitialspace=True)
    columns = len(NVIDIA_QUERY)
    return [
        dict(zip_longest(NVIDIA_QUERY, map(str.strip, row), fillvalue=""))
        if columns - 1 <= len(row) <= columns and row[0].isdigit()
        else {"message": ", ".join(row)}
        for row in rows
    ]


def _trouble(row: dict[str, str]) -> str:
    if "message" in row:
        return row["message"] if FAULT.search(row["message"]) else ""
    name = f"GPU {row['index']} ({row['name']})"
    memory = [row[f"memory.{kind}"] for kind in ("total", "free", "used")]
    if row["mig.mode.current"] == "Enabled":
        return split_by_mig(int(row["index"]), row["name"])
    if row["compute_mode"] == PROHIBITED:
        return closed_to_all(int(row["index"]), row["name"])
    if all(amount.isdigit() for amount in memory):
        return ""
    if all(amount in NOT_REPORTED for amount in memory) and SHARES_RAM.search(row["name"]):
        return ""
    return f"{name} does not tell its memory ({memory[0]}): it may need a reset"


def _accelerator(
    row: dict[str, str], runtime: str, family: str, ram: tuple[int, int] | None
) -> Accelerator:
    if ram is None:
        free = int(row["memory.free"]) * MIB
        # memory.total includes the driver's reserve, which CUDA does not see.
        ram = (free + int(row["memory.used"]) * MIB, free)
    total, free = ram
    return Accelerator(
        type="cuda",
        index=int(row["index"]),
        uuid=row["uuid"],
        name=row["name"],
        memory_total=total,
        memory_free=free,
        driver=row["driver_version"],
        runtime_version=runtime,
        exclusive=row["compute_mode"] in EXCLUSIVE,
        family=family,
    )
