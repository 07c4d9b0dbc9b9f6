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


class Gone(Value):
    """An argument that was dropped.

    Attributes:
        instead: What takes its place, in words; empty = nothing does.
        since: The first version without it, where no schema tells; empty = not known.
    """

    instead: str = ""
    since: str = ""


class Whereabouts(Value):
    """Where an argument is known, seen from a version that does not know it.

    Attributes:
        last: Newest older version that knows it; empty = none.
        without: The first version after that, which does not.
        first: Oldest newer version that knows it; empty = none.
    """

    last: str = ""
    without: str = ""
    first: str = ""


def whereabouts(option: str, version: str, schemas: Sequence[Schema]) -> Whereabouts:
    """Which other versions know an option.

    Args:
        option: With its dashes.
        version: The one that does not know it.
        schemas: Those of all versions, in any order.
    """
    ordered = sorted(schemas, key=lambda schema: version_key(schema.version))
    here = version_key(version)
    older = [schema for schema in ordered if version_key(schema.version) < here]
    newer = [schema for schema in ordered if version_key(schema.version) > here]
    first = next((schema.version for schema in newer if option in schema.options), "")
    last = next((i for i in reversed(range(len(older))) if option in older[i].options), None)
    if last is None:
        return Whereabouts(first=first)
    after = older[last + 1].version if last + 1 < len(older) else version
    return Whereabouts(last=older[last].version, without=after, first=first)


def gone(option: str, table: Mapping[str, Gone]) -> Gone | None:
    """The entry of a dropped argument; `*` in the table stands for any ending."""
    return next((entry for name, entry in table.items() if fnmatchcase(option, name)), None)


class Owned(Value):
    """An argument that a field decides about.

    Attributes:
        field: The field, as it is written; empty = there is none.
        refused: Why the argument would break what moorage promises; empty = it may be given.
    """

    field: str
    refused: str = ""


class Rules(Value):
    """What is known of an engine's arguments beside its schemas.

    Attributes:
        title: The engine's name as people write it.
        owned: Arguments that fields decide about, by their first name.
        gone: Arguments that were dropped.
    """

    title: str
    owned: dict[str, Owned] = {}
    gone: dict[str, Gone] = {}
