"""Sizes in bytes and durations in seconds, as people write and read them."""

import re
from typing import Annotated

from pydantic import BeforeValidator, ByteSize, Field, WithJsonSchema

KIB = 1024
MIB = 1024**2
GIB = 1024**3

LARGEST_SIZE = 1024 * 1024**4
"""Largest size, 1 PiB: sums of such sizes fit every database and every engine."""

SIZE_UNITS = {
    "B": 1,
    **{"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15},
    **{"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024 * GIB, "PiB": 1024**2 * GIB},
}
"""Units of a size; no other text may follow its number."""

SIZE_PATTERN = r"^ *[0-9]+(\.[0-9]+)? *(B|kB|[KMGTP]B|[KMGTP]iB)? *$"
_SIZE = re.compile(r" *([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*) *")
_LONGEST = 40
"""Most characters of a size."""


def parse_bytes(written: object) -> int:
    """Parse a size: a whole number of bytes, or a number with one of `SIZE_UNITS`.

    Raises:
        ValueError: It is not a size; the message says what is wrong.
    """
    if isinstance(written, str):
        amount = _bytes_of(written)
    elif isinstance(written, int | float) and written % 1 == 0 and not isinstance(written, bool):
        amount = int(written)
    else:
        raise ValueError("a size such as 16GiB")
    if amount < 0:
        raise ValueError("a size such as 16GiB, not below 0")
    if amount > LARGEST_SIZE:
        raise ValueError("a size such as 16GiB, of at most 1PiB")
    return amount


def _bytes_of(text: str) -> int:
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    if not match:
        raise ValueError("a size such as 16GiB")
    number, unit = match.groups()
    if unit and unit not in SIZE_UNITS:
        near = next((known for known in SIZE_UNITS if known.lower() == unit.lower()), "")
        units = f"; its unit is one of {', '.join(SIZE_UNITS)}"
        raise ValueError(f"a size such as {number + near if near else '16GiB' + units}")
    factor = SIZE_UNITS[unit or "B"]
    if "." not in number:
        return int(number) * factor
    if factor == 1:
        raise ValueError("a size such as 16GiB, or a whole number of bytes")
    return int(float(number) * factor)


Bytes = Annotated[
    ByteSize,
    BeforeValidator(parse_bytes),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_PATTERN}]}
    ),
]
"""A number of bytes, or a text such as `16GiB`."""


DURATION_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
DURATION = r"([0-9]+(\.[0-9]+)?(h|ms|m|s))+"
DURATION_PATTERN = rf"^{DURATION}$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)")
_WHOLE = re.compile(DURATION_PATTERN)


def parse_duration(written: object) -> float:
    """Parse a duration into seconds: a number of seconds, or a text such as `500ms` or `1h30m`.

    Raises:
        ValueError: It is not a duration.
    """
    if isinstance(written, int | float) and not isinstance(written, bool) and written > 0:
        return float(written)
    if isinstance(written, str) and len(written) <= _LONGEST and _WHOLE.match(written):
        parts = _PART.findall(written)
        return sum(float(number) * DURATION_UNITS[unit] for number, unit in parts)
    raise ValueError("a duration such as 500ms, 30s or 1h30m")


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    Field(gt=0, le=31_536_000),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": DURATION_PATTERN},
            ]
        }
    ),
]
"""Seconds, at most a year: a number, or a text such as `500ms`."""


def human_bytes(amount: int) -> str:
    """Format a number of bytes with the largest fitting binary unit, such as `2.5 GiB`."""
    for unit, size in (("TiB", 1024 * GIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(amount) >= size:
            return f"{amount / size:.1f} {unit}"
    return f"{amount} B"


def exact_size(amount: int) -> str:
    """Format a number of bytes without rounding, such as `10GiB`."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)


def human_seconds(seconds: float) -> str:
    """Format a duration for people: `0.42 s`, `3 min 05 s` or `2 d 04 h`.

    A duration below zero, as between two clocks that differ, is zero.
    """
    if seconds < 10:
        return f"{max(0.0, seconds):.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def short_seconds(seconds: float) -> str:
    """Format a short duration: `12.3 ms` below 1 s, else as `human_seconds` does."""
    return f"{short_number(seconds * 1000)} ms" if seconds < 1 else human_seconds(seconds)


def short_number(figure: float) -> str:
    """Format a figure with three significant digits, such as `2.83`, or as an integer: `12345`."""
    return f"{figure:.3g}" if figure < 999.5 else f"{figure:.0f}"


def counted(number: int, noun: str) -> str:
    """Format a number of things, such as `1 node` or `3 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
