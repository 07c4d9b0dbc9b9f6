"""The arguments of an engine by version, and the rules about them that no schema holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from moorage.common.values import Value
from moorage.common.versions import version_key


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
    """The engine's notice about an argument that it will drop.

    Attributes:
        gone_in: Version that drops it; empty = not stated.
        instead: Argument that takes its place; empty = not stated.
    """

    gone_in: str = ""
    instead: str = ""


class Argument(Value):
    """One argument.

    Attributes:
        options: Its names with their dashes; the first is the one used in messages.
        kind: Type of each value.
        values: How many: None = one, a number, `?` = at most one, `+` = some, `*` = any number.
        choices: The only values that are allowed; empty = any.
        any_case: Whether choices may be written in any case, with dashes for underscores.
        none: Whether an empty value and `None` stand for no value.
        keys: The only keys of a JSON object that are allowed; empty = any.
        required: Whether it has to be given.
        deprecated: The notice of its removal; None = none.
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
        """The option that messages name."""
        return self.options[0]

    @property
    def takes_value(self) -> bool:
        """Whether it takes values."""
        return self.kind not in (Kind.SWITCH, Kind.HELP)


class Schema(Value):
    """All arguments of one version.

    Attributes:
        format: Shape of the files that hold schemas.
        engine: The engine's name.
        version: Its version.
        also: Other versions with the same arguments.
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


class RemovedOption(Value):
    """An option that the engine dropped.

    Attributes:
        instead: Its replacement, in words; empty = none.
        since: The first version without it, where no schema shows it; empty = not known.
    """

    instead: str = ""
    since: str = ""


class KnownIn(Value):
    """The versions around one that does not know an option.

    Attributes:
        last: Newest older version that knows it; empty = none.
        without: The first version after `last`, without it.
        first: Oldest newer version that knows it; empty = none.
    """

    last: str = ""
    without: str = ""
    first: str = ""


def known_in(option: str, version: str, schemas: Sequence[Schema]) -> KnownIn:
    """The other versions that know an option.

    Args:
        option: With its dashes.
        version: A version that does not know it.
        schemas: The schemas of all versions, in any order.
    """
    ordered = sorted(schemas, key=lambda schema: version_key(schema.version))
    here = version_key(version)
    older = [schema for schema in ordered if version_key(schema.version) < here]
    newer = [schema for schema in ordered if version_key(schema.version) > here]
    first = next((schema.version for schema in newer if option in schema.options), "")
    last = next((i for i in reversed(range(len(older))) if option in older[i].options), None)
    if last is None:
        return KnownIn(first=first)
    after = older[last + 1].version if last + 1 < len(older) else version
    return KnownIn(last=older[last].version, without=after, first=first)


def removed_option(option: str, table: Mapping[str, RemovedOption]) -> RemovedOption | None:
    """The entry of a dropped option; `*` in the table stands for any ending."""
    return next((entry for name, entry in table.items() if fnmatchcase(option, name)), None)


class ReservedOption(Value):
    """An option whose value a field of the spec decides.

    Attributes:
        field: The field, as users write it; empty = there is none.
        refused: Why the option is not allowed; empty = it is.
    """

    field: str
    refused: str = ""


class Rules(Value):
    """Rules for an engine's arguments that no schema holds.

    Attributes:
        title: The engine's name as people write it.
        reserved: Options whose values fields decide, by their first name.
        removed: Options that were dropped.
    """

    title: str
    reserved: dict[str, ReservedOption] = {}
    removed: dict[str, RemovedOption] = {}
