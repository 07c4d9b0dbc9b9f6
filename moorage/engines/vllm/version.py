"""The order of vLLM's versions."""

from __future__ import annotations

import re
from math import inf

VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(.*)")
EARLY = re.compile(r"[.-]?(a|b|c|rc|alpha|beta|dev|pre)(?![a-z])")

Order = tuple[tuple[float, ...], bool]


def at_least(version: str, least: str) -> bool:
    """Whether a version is another one or newer; an empty one is not known to be.

    Args:
        version: As images and users write it, such as `v0.16.0`, `0.19.0-custom`, `0.16.0rc1`.
        least: The other.
    """
    return bool(version) and order(version) >= order(least)


def order(version: str) -> Order:
    """What versions are sorted by.

    A release candidate comes before its release, and what has no number (`nightly`) after all.
    """
    match = VERSION.fullmatch(version)
    if not match:
        return (inf,), True
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), not EARLY.match(match[2])
