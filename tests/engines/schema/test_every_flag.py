"""Every argument of every shipped schema: taken with a good value, refused with a bad one."""

from __future__ import annotations

import pytest

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.reading import Reading, read
from moorage.spec import EngineName
from tests.engines.schema.writings import BAD, GOOD

ENGINES_OF_SCHEMAS = (EngineName.VLLM, EngineName.TRANSFORMERS, EngineName.LLAMA_CPP)
EVERY = list(
    {
        schema.arguments: schema
        for engine in ENGINES_OF_SCHEMAS
        for schema in shipped_schemas(engine)
    }.values()
)
"""Of versions with the same arguments, one."""

NAMES = [f"{schema.engine}-{schema.version}" for schema in EVERY]
LEAST = {"vllm": 150, "transformers": 20, "llama.cpp": 250}


@pytest.mark.parametrize("schema", EVERY, ids=NAMES)
def test_every_argument_is_taken_with_a_good_value_under_each_of_its_names(schema: Schema) -> None:
    for argument in schema.arguments:
        for option in argument.options:
            reading = read((option, *good_values(argument)), schema)
            assert reading == Reading(given=(option,)), option


@pytest.mark.parametrize("schema", EVERY, ids=NAMES)
def test_every_argument_is_refused_with_a_bad_value(schema: Schema) -> None:
    for argument in schema.arguments:
        reading = read((argument.name, *bad_values(argument)), schema)
        assert reading.stray or [item.option for item in reading.problems] == [argument.name]


@pytest.mark.parametrize("schema", EVERY, ids=NAMES)
def test_no_option_belongs_to_two_arguments(schema: Schema) -> None:
    options = [option for argument in schema.arguments for option in argument.options]
    assert len(options) == len(set(options)) > LEAST[schema.engine]


@pytest.mark.parametrize("engine", [*ENGINES_OF_SCHEMAS, EngineName.SGLANG])
def test_each_version_is_shipped_once(engine: EngineName) -> None:
    schemas = shipped_schemas(engine)
    versions = [schema.version for schema in schemas]
    assert len(versions) == len(set(versions))
    assert ENGINES[engine].default_version in versions


def good_values(argument: Argument) -> list[str]:
    if not argument.takes_value:
        return []
    value = str(argument.choices[0]) if argument.choices else GOOD[argument.kind][0]
    return [value] * (argument.values if isinstance(argument.values, int) else 1)


def bad_values(argument: Argument) -> list[str]:
    """What its kind is not; any text is good for some, so they get none, or one too many."""
    if not argument.takes_value or argument.values == "?":
        return ["one", "too many"]
    if argument.choices:
        return ["no-such-choice"]
    return [] if argument.kind == Kind.TEXT else [BAD[argument.kind][0]]
