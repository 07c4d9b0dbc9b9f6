"""Write the arguments of a llama-server as JSON, one argument a line, from its `--help`.

    llama-server --help | python -m moorage.adapters.engines.extract_llama_cpp_schema BUILD

The xllamacpp wheel, which has no program, prints the same (`llama_cpp_parser.py`).
A help text tells only by the default whether a number is an integer; without a default, any number
is accepted.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from moorage.adapters.engines.extract_vllm_schema import deprecation, document

COLUMN = 40
"""Column where descriptions begin. A longer option has its description on the next line."""

OPTION = re.compile(r"(?P<names>-[^\s,]+(?:,\s+-[^\s,]+)*)\s*(?P<hint>.*)")
NUMBERS = re.compile(r"N|P|L|INDEX|PORT|SECONDS|SEED|SIMILARITY|<0(?:\||\.\.\.)\d+>")
CHOICES = re.compile(r"[\[{]([\w-]+(?:[|,][\w-]+)+)[\]}]")
SEVERAL = re.compile(r"[A-Z]+(?: [A-Z]+)+")
ALLOWED = re.compile(r"allowed values: ((?:\w+, )*\w+)")
WORD = re.compile(r"'[a-z]+'")
WHOLE = re.compile(r"default: -?\d+(?![.\d])")
DECIMAL = re.compile(r"\d\.\d")
DEPRECATED = re.compile(r"DEPRECATED")
REMOVED = re.compile(r"the argument has been removed\. use (.+?)(?: \(env: .*)?$")


def main() -> None:
    """Print the schema of the help text on standard input, for the build in the first argument."""
    sys.stdout.write(schema_of_help(sys.stdin.read(), sys.argv[1]))


def schema_of_help(text: str, build: str) -> str:
    """Schema as JSON, from a build's `--help`."""
    rows = [describe(*entry) for entry in entries(text)]
    return document("llama.cpp", build, rows, grammar="words")


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Each option: names with hint, and the description joined to one line."""
    option, description = "", list[str]()
    for line in [*text.splitlines(), "-"]:
        if not line.startswith("-"):
            description.append(line.strip())
            continue
        if option:
            yield option, " ".join(description)
        is_short = line[COLUMN - 1 : COLUMN] in ("", " ")
        option, rest = (line[:COLUMN], line[COLUMN:]) if is_short else (line, "")
        option, description = ("" if line.startswith("-----") else option.strip()), [rest.strip()]


def describe(option: str, description: str) -> dict[str, Any]:
    """Describe an argument; long names come first, and positive names before `--no-` names."""
    match = OPTION.fullmatch(option)
    if match is None:
        raise ValueError(f"no option: {option!r}")
    names = sorted(
        re.split(r",\s+", match["names"]),
        key=lambda name: (not name.startswith("--"), name.startswith("--no-")),
    )
    row: dict[str, Any] = {"options": names, **value_of(match["hint"], description)}
    if removed := REMOVED.search(description):
        row["removed"] = removed[1]
    elif DEPRECATED.search(description):
        row["deprecated"] = deprecation(description)
    return row


def value_of(hint: str, description: str) -> dict[str, Any]:
    """Kind, number and choices of an argument's values."""
    if not hint:
        return {"kind": "switch"}
    if SEVERAL.fullmatch(hint):
        return {"kind": "text", "values": len(hint.split())}
    if match := CHOICES.fullmatch(hint):
        return {"kind": "text", "choices": sorted(re.split(r"[|,]", match[1]))}
    if match := ALLOWED.search(description):
        return {"kind": "text", "choices": sorted(match[1].split(", "))}
    if not NUMBERS.fullmatch(hint) or WORD.search(description):
        return {"kind": "text"}
    is_whole = WHOLE.search(description) and not DECIMAL.search(description)
    return {"kind": "integer" if is_whole else "number"}


if __name__ == "__main__":
    main()
