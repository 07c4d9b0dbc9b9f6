"""The table of the arguments of all versions of an engine, which moorage ships."""

from collections.abc import Iterator, Sequence
from itertools import groupby
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
    seldom drop arguments; for an unknown version the newest.

    Args:
        version: The version; empty = unknown.
        schemas: The schemas of all versions, the newest first.
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


def history_of(schemas: Sequence[Schema]) -> History:
    """The table of one engine's schemas, of which a later one replaces others of its version."""
    latest = {one.version: one for one in schemas}
    ordered = sorted(latest.values(), key=lambda one: version_key(one.version))
    spans = sorted(_spans(ordered), key=lambda one: one.argument.name)
    return History(
        engine=ordered[-1].engine,
        grammar=ordered[-1].grammar,
        versions=tuple(one.version for one in ordered),
        spans=tuple(spans),
    )


def _spans(ordered: Sequence[Schema]) -> Iterator[Span]:
    """A span for each run of versions with the same description of an argument."""
    having: dict[Argument, list[int]] = {}
    for index, schema in enumerate(ordered):
        for argument in schema.arguments:
            having.setdefault(argument, []).append(index)
    for argument, places in having.items():
        for _, run in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
            found = [place for _, place in run]
            first, last = found[0], found[-1]
            yield Span(
                argument=argument,
                since=ordered[first].version if first else "",
                until=ordered[last].version if last < len(ordered) - 1 else "",
            )


def written(history: History) -> str:
    """The table as JSON, one span per line."""
    head = history.model_dump_json(exclude={"spans"}, exclude_defaults=True)
    lines = ",\n".join(span.model_dump_json(exclude_defaults=True) for span in history.spans)
    return f'{head[:-1]}, "spans": [\n{lines}\n]}}\n'
