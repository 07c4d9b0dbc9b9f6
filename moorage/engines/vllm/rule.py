"""Short ways to make flags and variables."""

from __future__ import annotations

from moorage.common.values import Origin
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
