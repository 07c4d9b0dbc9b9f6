"""Which accelerators are joined by NVLink, from the matrix that `nvidia-smi topo -m` draws."""

from __future__ import annotations

import re

GPU = re.compile(r"^GPU(\d+)$")
NVLINK = re.compile(r"^NV\d+$")
COLOUR = re.compile(r"\x1b\[\d*m")
"""Some drivers underline the heading."""


def linked_groups(matrix: str) -> tuple[tuple[int, ...], ...]:
    """Groups of at least two GPUs that NVLink joins, directly or through others.

    Args:
        matrix: A heading, then a row for each device; cells are `X`, `NV18`, `PIX`, `SYS`, ...

    Returns:
        Indexes in order; empty where there is no NVLink.
    """
    rows = [line.split() for line in COLOUR.sub("", matrix).splitlines()]
    heading = next((row for row in rows if row[:1] == ["GPU0"] and row[1:2] != ["X"]), [])
    columns = [(at, int(name[1])) for at, word in enumerate(heading) if (name := GPU.match(word))]
    joined: dict[int, set[int]] = {index: {index} for _, index in columns}
    for row in rows:
        name = GPU.match(row[0]) if row else None
        if row is heading or not name or int(name[1]) not in joined:
            continue
        for at, other in columns:
            if at + 1 < len(row) and NVLINK.match(row[at + 1]):
                _join(joined, int(name[1]), other)
    groups = {tuple(sorted(group)) for group in joined.values() if len(group) > 1}
    return tuple(sorted(groups))


def _join(joined: dict[int, set[int]], one: int, other: int) -> None:
    together = joined[one] | joined[other]
    for index in together:
        joined[index] = together
