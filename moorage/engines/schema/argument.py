"""The arguments of an engine by version, and rules for arguments that schemas cannot express."""

from collections.abc import Iterable, Mapping
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
    """An integer, optionally with a letter after it: `32k` = 32000, `32K` = 32768."""

    READABLE_INTEGER_OR_AUTO = "readable-integer-or-auto"
    JSON = "json"
    OBJECT = "object"
    """A JSON object, in which bare numbers may have a letter after them."""

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
        options: Its names with their dashes; messages use the first.
        values: How many: None = one, a number, `?` = at most one, `+` = one or more, `*` = any.
        choices: The only values that are allowed; empty = any.
        any_case: Whether choices may be written in any case, with dashes for underscores.
        none: Whether an empty value and `None` stand for no value.
        keys: The only keys of a JSON object that are allowed; empty = any.
        removed: The replacement that the engine names, if it knows the option only to refuse it.
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
    """How an engine parses the words of its command line."""

    FLEXIBLE = "flexible"
    """vLLM's: unique prefixes of options, `_` for `-`, `--k=v`, JSON by keys."""

    EXACT = "exact"
    """click's: options only in their exact spelling; `--k=v`."""

    WORDS = "words"
    """llama-server's: an option and each of its values are separate words."""


class Schema(Value):
    """All arguments of one version, as stored in a file."""

    format: Literal[1] = 1
    engine: str
    version: str
    grammar: Grammar = Grammar.FLEXIBLE
    arguments: tuple[Argument, ...]
    assumed: bool = False
    """Whether these are the arguments of other versions, because its own are not known."""

    @cached_property
    def options(self) -> dict[str, Argument]:
        """Arguments by each of their names, short and negative names included."""
        return {option: argument for argument in self.arguments for option in argument.options}


class RemovedOption(Value):
    """An option that the engine removed."""

    instead: str = ""
    """Its replacement, in words; empty = none."""

    since: str = ""
    """First version without it, if no schema shows that; empty = unknown."""


class ReservedOption(Value):
    """An option whose value a field of the spec decides; `field` empty = no field does."""

    field: str
    refused: str = ""
    """Why the option is not allowed; empty = it is allowed."""


def reserved_options(
    overriding: Mapping[str, str], refused: Iterable[tuple[str, str, str]]
) -> dict[str, ReservedOption]:
    """Reserved options by their first name.

    Args:
        overriding: Options in one text that override a field of the spec, by field.
        refused: The field in place of refused options (empty = none), the reason, the options.
    """
    rows = [*((field, "", names) for field, names in overriding.items()), *refused]
    return {
        name: ReservedOption(field=field, refused=why)
        for field, why, names in rows
        for name in names.split()
    }


class Subset(Value):
    """The options of an engine that a program running in its place supports."""

    options: frozenset[str]
    """One name of each option."""

    refused: str
    """Why other options are not allowed."""

    suggestion: str


class Rules(Value):
    """Rules for an engine's arguments that schemas cannot express."""

    title: str
    """The engine's name in messages."""

    reserved: dict[str, ReservedOption] = {}
    """Options whose values fields of the spec decide, by their first name."""

    removed: dict[str, RemovedOption] = {}
    """Removed options; `*` in a name matches any ending."""

    extracted_as: EngineName | None = None
    """The engine whose arguments `moorage schema` can read from a version; None = it cannot."""

    subset: Subset | None = None
    """The options of a program that runs in place of the engine; None = all of the engine's."""
