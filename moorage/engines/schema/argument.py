"""The arguments of an engine by version, and the rules about them that no schema holds."""

from enum import StrEnum
from functools import cached_property
from typing import Literal

from moorage.common.values import Value
from moorage.spec import EngineName


class Kind(StrEnum):
    """The type of an argument's values."""

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
    """The engine's notice about an argument that it will drop; empty = not stated."""

    gone_in: str = ""
    instead: str = ""


class Argument(Value):
    """One argument.

    Attributes:
        options: Its names with their dashes; the first is the one used in messages.
        values: How many: None = one, a number, `?` = at most one, `+` = some, `*` = any number.
        choices: The only values that are allowed; empty = any.
        any_case: Whether choices may be written in any case, with dashes for underscores.
        none: Whether an empty value and `None` stand for no value.
        keys: The only keys of a JSON object that are allowed; empty = any.
        removed: What the engine says to use instead, where it knows the name only to refuse it.
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
    removed: str = ""

    @property
    def name(self) -> str:
        """The option that messages name."""
        return self.options[0]

    @property
    def takes_value(self) -> bool:
        """Whether it takes values."""
        return self.kind not in (Kind.SWITCH, Kind.HELP)


class Grammar(StrEnum):
    """How an engine reads the words of its command line."""

    FLEXIBLE = "flexible"
    """As vLLM: a unique prefix of an option, `_` for `-`, `--k=v`, JSON by keys."""

    EXACT = "exact"
    """As click: options are taken only as they are spelled; `--k=v`."""

    WORDS = "words"
    """As llama-server: an option and each of its values are words of their own."""


class Schema(Value):
    """All arguments of one version, as it is kept in a file."""

    format: Literal[1] = 1
    engine: str
    version: str
    grammar: Grammar = Grammar.FLEXIBLE
    arguments: tuple[Argument, ...]

    @cached_property
    def options(self) -> dict[str, Argument]:
        """Every name, short ones and negative ones too."""
        return {option: argument for argument in self.arguments for option in argument.options}


class RemovedOption(Value):
    """An option that the engine dropped."""

    instead: str = ""
    """Its replacement, in words; empty = none."""

    since: str = ""
    """The first version without it, where no schema shows it; empty = not known."""


class ReservedOption(Value):
    """An option whose value a field of the spec decides; empty = none does."""

    field: str
    refused: str = ""
    """Why the option is not allowed; empty = it is."""


class Subset(Value):
    """Some of an engine's options: those that a program has that runs in its place."""

    options: frozenset[str]
    """One name of each."""

    refused: str
    """Why others are not allowed."""

    suggestion: str


class Rules(Value):
    """Rules for an engine's arguments that no schema holds."""

    title: str
    """The engine's name as people write it."""

    reserved: dict[str, ReservedOption] = {}
    """Options whose values fields decide, by their first name."""

    removed: dict[str, RemovedOption] = {}
    """Options that were dropped; `*` in a name stands for any ending."""

    extracted_as: EngineName | None = None
    """The engine whose arguments `moorage schema` can ask a version for; None = it cannot."""

    subset: Subset | None = None
    """The options of what runs in place of the engine; None = all of the engine's."""
