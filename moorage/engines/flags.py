"""Flags and variables of an engine, each with its origin."""

from moorage.common.values import Origin, Value


class Flag(Value):
    """Words of a command line that belong together, and their origin.

    Attributes:
        tokens: The words.
        origin: Who decided about them.
        reason: Why, or the field that they stand in.
        written: Whether they are the user's own words, out of `engine.args`,
            `engine.command` or `engine.entrypoint`.
            All other words are injected: made from fields, the placement or defaults.
    """

    tokens: tuple[str, ...]
    origin: Origin
    reason: str
    written: bool = False


class Variable(Value):
    """An environment variable. A secret is named, not written: it is looked up at launch."""

    name: str
    value: str = ""
    secret: str = ""
    origin: Origin
    reason: str


def derived_flag(reason: str, *tokens: str) -> Flag:
    """A flag that follows from the model, the host or the placement."""
    return Flag(tokens=tokens, origin=Origin.DERIVED, reason=reason)


def default_flag(reason: str, *tokens: str) -> Flag:
    """A flag of every server."""
    return Flag(tokens=tokens, origin=Origin.DEFAULT, reason=reason)


def spec_flag(reason: str, *tokens: str) -> Flag:
    """A flag that follows from a field of the spec."""
    return Flag(tokens=tokens, origin=Origin.USER, reason=reason)


def variable(name: str, value: str, reason: str, origin: Origin = Origin.DEFAULT) -> Variable:
    """A variable, by default one of every server."""
    return Variable(name=name, value=value, origin=origin, reason=reason)
