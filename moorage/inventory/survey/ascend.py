"""Huawei's Ascend accelerators, from the table of `npu-smi info`.

Each chip has two rows: card and name, then PCI address and memory. Depending on the chip the
memory is in the column HBM (training cards) or in the plain memory column (310P).
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from operator import itemgetter

from moorage.common.units import MIB
from moorage.inventory.snapshot import Accelerator
from moorage.inventory.survey.facts import Found

VERSION = re.compile(r"npu-smi\s+\S+\s+Version:\s*(\S+)")
BUS = re.compile(r"^[0-9A-Fa-f]{4}:[0-9A-Fa-fxX]{2}:[0-9A-Fa-f]{2}\.\d$")
USAGE = re.compile(r"(\d+)\s*/\s*(\d+)")
FAMILY = "Ascend"
SILENT = re.compile(r"^dcmi \w+ initiali\w+ failed.*$", re.MULTILINE)
"""The only answer while another container has a chip open: `... the device is used. ret is -8020`,
or `ret is -8005`."""


def ascend_found(table: str, nodes: Collection[int] = ()) -> Found:
    """The accelerators of the table; each has the index N of its device file `/dev/davinciN`.

    The name is also the family by which images differ. Unhealthy chips are troubles, and so are
    chips that do not show themselves.

    Args:
        nodes: The indexes of the device files that are there; empty = unknown.
    """
    version = VERSION.search(table)
    rows = [_cells(line) for line in table.splitlines()]
    chips = [pair for pair in pairwise(rows) if _is_chip(*pair)]
    if not chips and (silent := SILENT.search(table)):
        trouble = (
            f"npu-smi shows no NPU ({silent[0].strip()}): a container that has opened one keeps it"
            " from all others. Write the NPUs down under `accelerators` of the host"
        )
        return Found(troubles=(trouble,), hides_accelerators=True)
    accelerators, troubles = [], []
    for index, (card, place) in sorted(_indexed(chips, nodes), key=itemgetter(0)):
        chip, health = card[0].split()[1], card[1]
        total, free = _memory(place[2])
        if health not in ("OK", "Warning") or not total:
            troubles.append(f"NPU {index} ({chip}) at {place[1]} is not usable: health {health}")
            continue
        accelerators.append(
            Accelerator(
                type="cann",
                index=index,
                name=chip,
                memory_total=total,
                memory_free=free,
                driver=version[1] if version else "",
                family=chip_family(chip),
            )
        )
    return Found(accelerators=tuple(accelerators), troubles=tuple(troubles))


def chip_family(chip: str) -> str:
    """The family of a chip, by which images differ: `Ascend910B3` of `910B3`."""
    is_whole = not chip or chip.lower().startswith(FAMILY.lower())
    return chip if is_whole else f"{FAMILY}{chip}"


def _indexed(
    chips: Sequence[tuple[list[str], list[str]]], nodes: Collection[int]
) -> list[tuple[int, tuple[list[str], list[str]]]]:
    """The chips with their indexes: the column Phy-ID or Device, without one the column NPU.

    On some hosts NPU is the number of a slot, and no device file has it: there the order counts.
    """
    words = [(place[0].split()[1:] or card[0].split())[0] for card, place in chips]
    indexes = [int(word) for word in words if word.isdigit()]
    if len(set(indexes)) < len(chips) or (nodes and not set(indexes) <= set(nodes)):
        indexes = sorted(nodes) if len(nodes) == len(chips) else list(range(len(chips)))
    return list(zip(indexes, chips, strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []


def _is_chip(card: list[str], place: list[str]) -> bool:
    return len(card) == len(place) == 3 and len(card[0].split()) > 1 and bool(BUS.match(place[1]))


def _memory(cell: str) -> tuple[int, int]:
    """Total and free bytes, of the last pair with a total: HBM comes last."""
    pairs = [(int(used), int(total)) for used, total in USAGE.findall(cell)]
    used, total = next((pair for pair in reversed(pairs) if pair[1]), (0, 0))
    return total * MIB, max(0, total - used) * MIB
