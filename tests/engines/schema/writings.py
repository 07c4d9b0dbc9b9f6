"""Command lines as people write them, right and wrong, made by chance from a schema.

python -m tests.engines.schema.writings COUNT SEED | VLLM_PYTHON tests/engines/vllm_oracle.py
"""

from __future__ import annotations

import json
import random
import sys

from moorage.adapters.engines.schema_store import shipped_schema
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.reading import MODEL
from moorage.spec import EngineName

GOOD: dict[Kind, tuple[str, ...]] = {
    Kind.TEXT: ("word", "two words", "a=b", "", "None", "-", "/a/b.c", "1"),
    Kind.INTEGER: ("1", "64", "1_000", " 7", "-3"),
    Kind.NUMBER: ("0.5", "1", "1e-3", "-0.5", "nan"),
    Kind.READABLE_INTEGER: ("4096", "32k", "32K", "25.6k", "1G", "2t"),
    Kind.READABLE_INTEGER_OR_AUTO: ("4096", "32k", "32K", "auto", "AUTO", "-1"),
    Kind.JSON: ('{"a": 1}', "[1, 2]", "null", "3", '"x"', "true"),
    Kind.OBJECT: ("{}",),
    Kind.TEXT_OR_OBJECT: ('{"a": {"b": 2}}', "word", " {} "),
    Kind.ADAPTERS: ("a=/b", '{"name": "a", "path": "/b"}', "a=b=c", ""),
}
BAD: dict[Kind, tuple[str, ...]] = {
    Kind.INTEGER: ("1.5", "two", "", "8k", "0x10", "None"),
    Kind.NUMBER: ("half", "1,5", "0.5k"),
    Kind.READABLE_INTEGER: ("1.5K", "k", "3x", "-1K", "auto", "1.5"),
    Kind.READABLE_INTEGER_OR_AUTO: ("1.5K", "long", "32 k", "-2x"),
    Kind.JSON: ("{", "{'a': 1}", "word", "{a: 1}", ""),
    Kind.OBJECT: ("{", "[]", "3", "{'a': 1}", '{"no_such_key": 1}', "word"),
    Kind.TEXT_OR_OBJECT: ("{x}", "{'a': 1}"),
    Kind.ADAPTERS: ("word", "{}", "[]", '{"name": "a"}', "a=b,c"),
}


def writings(schema: Schema, count: int, seed: int) -> list[list[str]]:
    """Words of the user; one to three arguments each, each in one of the usual writings."""
    chance = random.Random(seed)
    arguments = [item for item in schema.arguments if item.kind != Kind.HELP]
    made = []
    for _ in range(count):
        words: list[str] = []
        for argument in chance.choices(arguments, k=chance.choice((1, 1, 1, 2, 3))):
            words += _one(argument, chance)
        made.append(words)
    return made


def _one(argument: Argument, chance: random.Random) -> list[str]:
    name = _name(chance.choice(argument.options), chance)
    if argument.kind == Kind.SWITCH:
        return [f"{name}=true"] if chance.random() < 0.1 else [name]
    if chance.random() < 0.06:
        return [name]
    if argument.kind in (Kind.JSON, Kind.OBJECT) and chance.random() < 0.5:
        return _by_keys(name, argument, chance)
    values = [_value(argument, chance) for _ in range(_count(argument, chance))]
    if len(values) == 1 and chance.random() < 0.4:
        return [f"{name}={values[0]}"]
    return [name, *values]


def _name(option: str, chance: random.Random) -> str:
    roll = chance.random()
    if not option.startswith("--"):
        return option
    if roll < 0.25:
        return "--" + option[2:].replace("-", "_")
    if roll < 0.4:
        return option[: -chance.randint(1, 4)]
    if roll < 0.48:
        place = chance.randrange(2, len(option))
        return option[:place] + chance.choice("abc") + option[place + 1 :]
    return option


def _count(argument: Argument, chance: random.Random) -> int:
    if isinstance(argument.values, int):
        return argument.values
    if argument.values in ("+", "*"):
        return chance.randint(1, 3)
    return 2 if chance.random() < 0.05 else 1


def _value(argument: Argument, chance: random.Random) -> str:
    good = chance.random() < 0.7
    if argument.choices:
        choice = str(chance.choice(argument.choices))
        return choice if good else chance.choice((choice.upper(), choice + "x", "", "None"))
    words = GOOD if good else BAD
    return chance.choice(words.get(argument.kind, GOOD[argument.kind]))


def _by_keys(name: str, argument: Argument, chance: random.Random) -> list[str]:
    keys = [key for key in argument.keys if "size" in key or "enable" in key] or ["a", "a.b"]
    key = "no_such_key" if argument.keys and chance.random() < 0.2 else chance.choice(keys)
    value = "true" if "enable" in key else chance.choice(("1", "32", "1k"))
    more = "+" if not argument.keys and chance.random() < 0.2 else ""
    option = f"{name}.{key}{more}"
    return [f"{option}={value}"] if chance.random() < 0.3 else [option, value]


if __name__ == "__main__":
    known = shipped_schema("0.32.0", EngineName.VLLM)
    assert known
    lines = writings(known, int(sys.argv[1]), int(sys.argv[2]))
    asked = [["serve", MODEL, *line] for line in lines]
    json.dump({"lines": asked, "documents": []}, sys.stdout)
