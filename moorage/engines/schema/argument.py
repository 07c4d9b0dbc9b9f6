"""The arguments of one version of an engine, as its own parser describes them."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Literal

from moorage.common.values import Value


class Kind(StrEnum):
    """What a value of an argument has to be."""

    SWITCH = "switch"
    HELP = "help"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    READABLE_INTEGER = "readable-integer"
    """As an integer, or with a letter behind it: `32k` = 32000, `32K` = 32768."""

    READABLE_INTEGER_OR_AUTO = "readable-integer-or-auto"
    JSON = "json"
    OBJECT = "object"
    """A JSON object, in which bare numbers may have a letter behind them."""

    TEXT_OR_OBJECT = "text-or-object"
    ADAPTERS = "adapters"
    """`name=path`, or a JSON object with both."""


class Deprecation(Value):
    """What the engine says about an argument that it will drop.

    Attributes:
        gone_in: Version that drops it; empty = not said.
        instead: Argument that takes its place; empty = not said.
    """

    gone_in: str = ""
    instead: str = ""


class Argument(Value):
    """One argument.

    Attributes:
        options: Its names with their dashes, the one to speak of first.
        kind: What each of its values has to be.
        values: How many: None = one, a number, `?` = at most one, `+` = some, `*` = any number.
        choices: The only values that are allowed; empty = any.
        any_case: Whether choices may be written in any case, with dashes for underscores.
        none: Whether an empty value and `None` stand for no value.
        keys: The only keys of a JSON object that are allowed; empty = any.
        required: Whether it has to be given.
        deprecated: What is said about its end; None = nothing.
    """

    options: tuple[str, ...]
    kind: Kind
    values: int | Literal["?", "+", "*"] | None = None
    choices: tuple[int | float | str, ...] = ()
    any_case: bool = False
    none: bool = False
    keys: tuple[str, ...] = ()
    required: bool = False
    deprecated: Deprecation | None = None

    @property
    def name(self) -> str:
        """The option that it is spoken of by."""
        return self.options[0]

    @property
    def takes_value(self) -> bool:
        """Whether values belong to it at all."""
        return self.kind not in (Kind.SWITCH, Kind.HELP)


class Schema(Value):
    """All arguments of one version.

    Attributes:
        format: Shape of the files that hold schemas.
        engine: The engine's name.
        version: Its version.
        also: Other versions that were found to have the same arguments.
        arguments: In order of their names.
    """

    format: Literal[1] = 1
    engine: str
    version: str
    also: tuple[str, ...] = ()
    arguments: tuple[Argument, ...]

    @cached_property
    def options(self) -> dict[str, Argument]:
        """Every name, short ones and negative ones too."""
        return {option: argument for argument in self.arguments for option in argument.options}
