"""Which versions know an argument, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.engines.schema.argument import Schema


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
