"""Helpers that make flags and variables, and compare versions of vLLM."""

from __future__ import annotations

import re

from moorage.common.values import Origin
from moorage.common.versions import version_key
from moorage.engines.launch import Flag, Variable


def derived(reason: str, *tokens: str) -> Flag:
    """A flag that follows from the model, the host or the placement."""
    return Flag(tokens=tokens, origin=Origin.DERIVED, reason=reason)


def by_default(reason: str, *tokens: str) -> Flag:
    """A flag of every server."""
    return Flag(tokens=tokens, origin=Origin.DEFAULT, reason=reason)


def wanted(reason: str, *tokens: str) -> Flag:
    """A flag that follows from a field of the spec."""
    return Flag(tokens=tokens, origin=Origin.USER, reason=reason)


def variable(name: str, value: str, reason: str, origin: Origin = Origin.DEFAULT) -> Variable:
    """A variable, by default one of every server."""
    return Variable(name=name, value=value, origin=origin, reason=reason)


NUMBERED = re.compile(r"[vV]?\d")


def at_least(version: str, least: str) -> bool:
    """Whether a version is another one or newer; an empty one is not.

    A version without a number, such as `nightly`, is newer than all.

    Args:
        version: As images and users write it, such as `v0.16.0`, `0.19.0-custom`, `0.16.0rc1`.
        least: The other.
    """
    if not NUMBERED.match(version):
        return bool(version)
    return version_key(version) >= version_key(least)
