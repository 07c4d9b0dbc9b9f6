"""Flags and variables of an engine, each with its origin."""

from collections.abc import Mapping

from moorage.common.values import Origin, Value


class Flag(Value):
    """Words of a command line that belong together, and their origin.

    Attributes:
        reason: Why, or the field that holds them.
        written: Whether they are the user's own words, from `engine.args`, `engine.command` or
            `engine.entrypoint`. All other words are injected: made from fields, the placement or
            defaults.
    """

    tokens: tuple[str, ...]
    origin: Origin
    reason: str
    written: bool = False


class Variable(Value):
    """An environment variable. `secret` is the name of a secret, which the launch looks up."""

    name: str
    value: str = ""
    secret: str = ""
    origin: Origin
    reason: str


def derived_flag(reason: str, *tokens: str) -> Flag:
    """A flag that follows from the model, the host or the placement."""
    return Flag(tokens=tokens, origin=Origin.DERIVED, reason=reason)


def size_flags(reason: str, values: Mapping[str, object]) -> tuple[Flag, ...]:
    """Derived flags that have one value each and the same reason."""
    return tuple(derived_flag(reason, name, str(value)) for name, value in values.items())


def default_flag(reason: str, *tokens: str) -> Flag:
    """A flag that every server gets."""
    return Flag(tokens=tokens, origin=Origin.DEFAULT, reason=reason)


def spec_flag(reason: str, *tokens: str) -> Flag:
    """A flag that follows from a field of the spec."""
    return Flag(tokens=tokens, origin=Origin.USER, reason=reason)


def user_flag(reason: str, words: tuple[str, ...]) -> Flag:
    """The user's own words, from the field that `reason` names."""
    return Flag(tokens=words, origin=Origin.USER, reason=reason, written=True)


def variable(name: str, value: str, reason: str, origin: Origin = Origin.DEFAULT) -> Variable:
    """A variable; by default its origin is `DEFAULT`, which every server gets."""
    return Variable(name=name, value=value, origin=origin, reason=reason)
