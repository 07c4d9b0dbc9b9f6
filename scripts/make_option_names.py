"""Writes `moorage/spec/option_names.py` from the shipped schemas of vLLM.

    python scripts/make_option_names.py [FILE]

The table has the options that moorage's own code looks up: those whose names are string literals in
the folders of `ROOMS`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.engines.schema.argument import Schema

ROOT = Path(__file__).parents[1]
ROOMS = ("memory", "models", "placement", "engines", "readiness")
NOT_READING = ("vllm/options.py", "vllm/ray_cluster.py", "schema/reading.py")
OTHER_ENGINES = {"llama_cpp", "sglang", "transformers"}
"""Folders of engines with their own options."""

NAME = re.compile(r'"(--[a-z][a-z-]+)"')

LEVEL = "-O"
"""Left out: `--optimization-level` in newer versions, with a value that follows without a space."""

PAGE = '''"""Other writings of the options that moorage looks for, as a version of vLLM takes them.

Written by `scripts/make_option_names.py` from the shipped schemas ({first} to {last}).
"""

_ABBREVIATIONS = """
{shortest}
"""

SHORTEST = {{
    option.replace("[", "").rstrip("]"): option.partition("[")[0]
    for option in _ABBREVIATIONS.split()
}}
"""By option the shortest beginning that a version takes for it: what stands before the bracket."""

_ENABLED = """
{enabled}
"""
_DISABLED = """
{disabled}
"""

SECOND_NAMES: dict[str, str] = {{
{second}
    **{{f"--disable-{{name}}": f"--no-enable-{{name}}" for name in _ENABLED.split()}},
    **{{f"--enable-{{name}}": f"--no-disable-{{name}}" for name in _DISABLED.split()}},
}}
"""Second long names of an option, and the opposite of a switch."""

SHORT_NAMES: dict[str, str] = {{
{short}
}}
"""Names with one dash."""
'''


def option_names(schemas: Sequence[Schema]) -> str:
    """The text of the module `option_names`.

    Args:
        schemas: Schemas of all versions, the newest first.
    """
    names = _looked_up(schemas)
    short = {key: value for key, value in names.items() if not key.startswith("--")}
    second = {key: value for key, value in names.items() if key.startswith("--") and key != value}
    opposites = sorted(key for key, value in second.items() if value.startswith("--no-"))
    long = sorted(name for name in names if name.startswith("--"))
    shortest = {name: _shortest(name, schemas) for name in long}
    abbreviations = (
        f"{start}[{name.removeprefix(start)}]" for name, start in shortest.items() if name != start
    )
    return PAGE.format(
        first=schemas[-1].version,
        last=schemas[0].version,
        shortest=_words(abbreviations),
        enabled=_words(key.removeprefix("--disable-") for key in opposites if "--dis" in key),
        disabled=_words(key.removeprefix("--enable-") for key in opposites if "--en" in key),
        second=_lines({key: value for key, value in second.items() if key not in opposites}),
        short=_lines(short),
    )


def _looked_up(schemas: Sequence[Schema]) -> dict[str, str]:
    """All names of the options that the code mentions, each with its canonical name."""
    written = set(_named_in_code())
    found: dict[str, str] = {}
    for schema in reversed(schemas):
        for argument in schema.arguments:
            if written.isdisjoint(argument.options):
                continue
            for name in argument.options:
                if name != LEVEL:
                    found[name] = _canonical(name, argument.name)
    return found


def _named_in_code() -> Iterator[str]:
    for room in ROOMS:
        for file in (ROOT / "moorage" / room).glob("**/*.py"):
            if OTHER_ENGINES.isdisjoint(file.relative_to(ROOT).parts) and not str(file).endswith(
                NOT_READING
            ):
                yield from NAME.findall(file.read_text())


def _canonical(name: str, first: str) -> str:
    """The first name of an option; its `--no-` form where `name` is the opposite."""
    negated = first.replace("--", "--no-", 1)
    opposites = {("--enable-", "--disable-"), ("--disable-", "--enable-")}
    is_opposite = any(
        first.startswith(one) and name == first.replace(one, other, 1) for one, other in opposites
    )
    return negated if is_opposite or name == negated else first


def _shortest(name: str, schemas: Sequence[Schema]) -> str:
    """The shortest abbreviation that some version accepts for an option; else the whole name."""
    versions = [tuple(schema.options) for schema in schemas if name in schema.options]
    starts = (name[:end] for end in range(3, len(name)))
    return next((start for start in starts if _is_taken(start, versions)), name)


def _is_taken(start: str, versions: Sequence[tuple[str, ...]]) -> bool:
    return any(sum(option.startswith(start) for option in known) == 1 for known in versions)


def _words(names: Iterable[str]) -> str:
    return fill(" ".join(names), 100, break_on_hyphens=False)


def _lines(table: dict[str, str]) -> str:
    return "\n".join(f'    "{key}": "{table[key]}",' for key in sorted(table))


def main() -> None:
    default = ROOT / "moorage" / "spec" / "option_names.py"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    path.write_text(option_names(shipped_schemas()))


if __name__ == "__main__":
    main()
