"""Accelerators by name, with the memory that their drivers report.

Source: `nvidia-smi` and `amd-smi`; a little less than on the box, for the driver keeps some.
"""

from __future__ import annotations

from moorage.common.units import GIB, MIB, parse_bytes
from moorage.common.values import Value

COMMON_SIZES = tuple(size * GIB for size in (16, 24, 40, 48, 80, 96, 141, 192))
"""Bytes."""

REPORTED_MIB = {
    "NVIDIA T4": 15_360,
    "NVIDIA V100 32GB": 32_768,
    "NVIDIA A10": 23_028,
    "NVIDIA A10G": 23_028,
    "NVIDIA L4": 23_034,
    "NVIDIA GeForce RTX 3090": 24_576,
    "NVIDIA GeForce RTX 4090": 24_564,
    "NVIDIA GeForce RTX 5090": 32_607,
    "NVIDIA RTX A6000": 49_140,
    "NVIDIA L40S": 46_068,
    "NVIDIA A100 40GB": 40_960,
    "NVIDIA A100 80GB": 81_920,
    "NVIDIA H100 80GB": 81_559,
    "NVIDIA H100 NVL": 95_830,
    "NVIDIA H200": 143_771,
    "NVIDIA B200": 183_359,
    "AMD Instinct MI300X": 196_592,
}


class Device(Value):
    """An accelerator to count for.

    Attributes:
        name: Its name; empty when only its size is known.
        total: Bytes of its memory.
    """

    name: str = ""
    total: int


def find_device(text: str) -> Device | None:
    """Read a size such as `24GiB`, or a name or a part of one such as `h100`.

    Returns:
        The device; the first in the table of which all words match; None when there is none.
    """
    try:
        size = parse_bytes(text)
    except ValueError:
        size = 0
    if size >= GIB:  # else it may be a number in a name, such as 4090
        return Device(total=size)
    words = text.lower().replace("-", " ").split()
    for name, size in REPORTED_MIB.items():
        if words and all(word in name.lower() for word in words):
            return Device(name=name, total=size * MIB)
    return None
