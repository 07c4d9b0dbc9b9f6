"""Sizes in bytes, as people write and read them."""

from __future__ import annotations

from typing import Annotated

from pydantic import ByteSize, WithJsonSchema

KIB = 1024
MIB = 1024**2
GIB = 1024**3

Bytes = Annotated[
    ByteSize,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*([KMGTP]i?B|B)?\s*$"},
            ]
        }
    ),
]
"""A number of bytes, or a text such as `16GiB`."""


def human_bytes(amount: int) -> str:
    """Write a number of bytes with the largest fitting binary unit, such as `2.5 GiB`."""
    for unit, size in (("TiB", 1024 * GIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(amount) >= size:
            return f"{amount / size:.1f} {unit}"
    return f"{amount} B"


def human_seconds(seconds: float) -> str:
    """Write a duration as a person would say it, `0.42 s`, `3 min 05 s` or `2 d 04 h`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def counted(number: int, noun: str) -> str:
    """Write a number of things, such as `1 node` or `3 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
