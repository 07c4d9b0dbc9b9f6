"""The table of the arguments of all versions of an engine, which moorage ships."""

from collections.abc import Sequence
from typing import Literal

from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.engines.schema.argument import Argument, Grammar, Schema


class Span(Value):
    """An argument, and the range of versions that have it with this description."""

    argument: Argument
    since: str = ""
    """First version of the range; empty = the oldest of the table."""

    until: str = ""
    """Last version of the range; empty = the newest of the table."""


class History(Value):
    """The arguments of every version.

    Attributes:
        versions: All versions, the oldest first.
        spans: Sorted by the argument's first name.
    """

    format: Literal[2] = 2
    engine: str
    grammar: Grammar = Grammar.FLEXIBLE
    versions: tuple[str, ...]
    spans: tuple[Span, ...]


def schemas_of(history: History) -> tuple[Schema, ...]:
    """The schema of each version, the newest first; they share their arguments."""
    place = {version: index for index, version in enumerate(history.versions)}
    first, last = history.versions[0], history.versions[-1]
    rows = [
        (place[one.since or first], place[one.until or last], one.argument) for one in history.spans
    ]
    return tuple(
        Schema(
            engine=history.engine,
            version=version,
            grammar=history.grammar,
            arguments=tuple(row for since, until, row in rows if since <= place[version] <= until),
        )
        for version in reversed(history.versions)
    )


def assumed_schema(version: str, schemas: Sequence[Schema]) -> Schema:
    """The arguments of all versions, for a version whose own are not known.

    Where versions describe an argument differently, the next newer one decides, because releases
    seldom drop arguments; for an unknown version (empty) the newest. `schemas` are those of all
    versions, the newest first.
    """
    newer = [one for one in schemas if version_key(one.version) > version_key(version)]
    older = [one for one in schemas if one not in newer]
    nearest = [*(reversed(newer) if version else newer), *older]
    names, arguments = set[str](), list[Argument]()
    for argument in (argument for schema in nearest for argument in schema.arguments):
        if names.isdisjoint(argument.options):
            names.update(argument.options)
            arguments.append(argument)
    return Schema(
        engine=schemas[0].engine,
        version=version,
        grammar=schemas[0].grammar,
        arguments=tuple(arguments),
        assumed=True,
    )
