"""How vLLM rewrites words before it parses them: dashes, `-O3`, and JSON by keys.

Source: `FlexibleArgumentParser.parse_args` in `utils/argparse_utils.py` of vLLM 0.32; `-O` as in
versions before 0.12, where the schema has no `--optimization-level`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from moorage.common.strict_json import JsonError, decode
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.convert import NotAccepted, readable
from moorage.spec.arguments import WRITTEN

LEVELS = ("0", "1", "2", "3")
"""What may follow `-O` as a word of its own."""

NAME = re.compile(r"(?<=--)[^.=]*")
"""The part of an option in which `_` means `-`: up to the first key or value."""


def rewritten(words: Sequence[str], schema: Schema) -> list[str]:
    """The words as argparse gets to see them.

    Raises:
        NotAccepted: When an option with a key has no value; its first argument is the option.
    """
    return _gathered(_levels([_dashed(word) for word in words], schema))


def _dashed(word: str) -> str:
    if word.startswith("--help="):
        return "--help"
    if not word.startswith("--"):
        return word
    return NAME.sub(lambda match: match[0].replace("_", "-"), word, count=1)


def _levels(words: Sequence[str], schema: Schema) -> list[str]:
    """`-O3`, `-O=3` and `-O 3` as the option that they stand for."""
    option, keys = _level_option(schema)
    done: list[str] = []
    for index, word in enumerate(words):
        apart = word == "-O" and words[index + 1 : index + 2] and words[index + 1] in LEVELS
        if word.startswith("-O") and word != "-O" and not (keys and word.startswith("-O.")):
            done += [option, word[2:].removeprefix("=")]
        else:
            done.append(option if apart else word)
    return done


def _level_option(schema: Schema) -> tuple[str, bool]:
    """What `-O` stands for, and whether it may have keys itself (`-O.level 3`)."""
    if "--optimization-level" in schema.options:
        return "--optimization-level", False
    short = schema.options.get("-O")
    return ("-O.mode" if short and "mode" in short.keys else "-O.level"), True


def _gathered(words: Sequence[str]) -> list[str]:
    """Values by key (`--a.b c`, `--a.b+ c,d`) become JSON at the end, one for each option."""
    kept: list[str] = []
    objects: dict[str, dict[str, Any]] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-") or "." not in name:
            kept.append(word)
            continue
        value = value if equals else _next(rest, name)
        if name.endswith("+"):
            name, value = name[:-1], json.dumps(value.split(","))
        option, *keys = name.split(".")
        _merge(objects.setdefault(option, {}), _nested(keys, _value(value)))
    for option, content in objects.items():
        kept += [option, json.dumps(content)]
    return kept


def _next(rest: Iterable[str], name: str) -> str:
    for value in rest:
        return value
    raise NotAccepted(name)


def _value(text: str) -> Any:
    try:
        return decode(text, WRITTEN)
    except JsonError:
        pass
    try:
        return readable(text)
    except NotAccepted:
        return text


def _nested(keys: Sequence[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value if isinstance(value, dict) else {}


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        there = into.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            _merge(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            there += value
        else:
            into[key] = value
