"""Helpers that make flags and variables, and compare versions of vLLM."""

from __future__ import annotations

import re

from moorage.common.values import Origin
from moorage.common.versions import version_key
from moorage.engines.launch import Flag, Variable


def derived(reason: str, *tokens: str) -> Flag:
    """A flag that was worked out from the model, the host or the placement."""
    return Flag(tokens=tokens, origin=Origin.DERIVED, reason=reason)


def by_default(reason: str, *tokens: str) -> Flag:
    """A flag that is given to everyone."""
    return Flag(tokens=tokens, origin=Origin.DEFAULT, reason=reason)


def wanted(reason: str, *tokens: str) -> Flag:
    """A flag that a field of the spec asks for."""
    return Flag(tokens=tokens, origin=Origin.USER, reason=reason)


def variable(name: str, value: str, reason: str, origin: Origin = Origin.DEFAULT) -> Variable:
    """A variable; without an origin it is set for everyone."""
    return Variable(name=name, value=value, origin=origin, reason=reason)


NUMBERED = re.compile(r"[vV]?\d")


def at_least(version: str, least: str) -> bool:
    """Whether a version is another one or newer; an empty one is not known to be.

    What has no number, such as `nightly`, is newer than all.

    Args:
        version: As images and users write it, such as `v0.16.0`, `0.19.0-custom`, `0.16.0rc1`.
        least: The other.
    """
    if not NUMBERED.match(version):
        return bool(version)
    return version_key(version) >= version_key(least)
