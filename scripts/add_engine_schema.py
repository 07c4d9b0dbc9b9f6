"""Add schemas of engine versions to the arguments that moorage ships.

    python scripts/add_engine_schema.py FILE...

FILE is the output of `moorage/adapters/engines/extract_*_schema.py` or `scripts.engine_schemas`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from moorage.common.versions import version_key
from moorage.engines.schema.argument import Argument, Schema
from moorage.engines.schema.history import History, Span, schemas_of

ENGINES = Path(__file__).parents[1] / "moorage" / "engines"


def main() -> None:
    for name in sys.argv[1:]:
        schema = Schema.model_validate_json(Path(name).read_text())
        path = ENGINES / schema.engine.replace(".", "_") / "schemas.json"
        known = schemas_of(History.model_validate_json(path.read_text())) if path.exists() else ()
        path.write_text(written(history_of((*known, schema))))
        print(f"{path}: {schema.engine} {schema.version}, {len(schema.arguments)} arguments")


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


if __name__ == "__main__":
    main()
