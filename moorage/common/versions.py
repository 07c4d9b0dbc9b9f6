"""Compares versions of accelerator runtimes and engines, many of which follow no standard."""

import re

PRE_RELEASES = ("dev", "alpha", "a", "beta", "b", "pre", "preview", "c", "rc")
"""Marks of pre-releases, the earliest first."""

NUMBERED = re.compile(r"[vV]?\d")

Part = tuple[int, int, str]


def version_key(version: str) -> tuple[Part, ...]:
    """A sort key: numbers by value, `8.5.rc1` before `8.5`, and `8.5` before `8.5.post1`.

    An upper-case mark does not mean a pre-release: CANN's drivers call a release `8.3.RC1`. Missing
    numbers count as zero, so `12.9` equals `12.9.0`. A version without a number at its beginning
    (`nightly`) is the newest, and an empty version the oldest.
    """
    parts: list[Part] = []
    if re.match("[vV]?[^vV0-9]", version):
        return (NEWEST,)
    for text in [*re.findall(r"\d+|[A-Za-z]+", re.sub("^[vV]", "", version)), ""]:
        part = _part(text)
        while parts and part[0] <= 0 and parts[-1] == ZERO:
            parts.pop()
        parts.append(part)
    return tuple(parts) if version else ()


def at_least(version: str, least: str) -> bool:
    """Whether a version is at least another; an empty version is not.

    A version without a number, such as `nightly`, is newer than all. Others are as images and users
    write them: `v0.16.0`, `0.19.0-custom`, `0.16.0rc1`.
    """
    if not NUMBERED.match(version):
        return bool(version)
    return version_key(version) >= version_key(least)


def is_version(found: str, wanted: str) -> bool:
    """Whether a version is the wanted one; `0.32.0+cu129` is also `0.32.0`, as in PEP 440."""
    return wanted in (found, found.partition("+")[0])


def major(version: str) -> str:
    """The number before the first dot."""
    return version.lower().removeprefix("v").partition(".")[0]


ZERO: Part = (1, 0, "")
NEWEST: Part = (2, 0, "")


def _part(text: str) -> Part:
    """The rank of one part. The end of a version ranks below further parts, above pre-releases."""
    if text.isdigit():
        return (1, int(text), "")
    if text in PRE_RELEASES:
        return (-1, PRE_RELEASES.index(text), "")
    return (0, 0, text)
