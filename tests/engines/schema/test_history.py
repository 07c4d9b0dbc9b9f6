"""The table of all versions holds what the schema of each version says."""

from __future__ import annotations

import pytest

from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.history import History, assumed_schema, schemas_of
from moorage.spec import EngineName
from scripts.add_engine_schema import history_of, written

STAYS = Argument(options=("--stays",), kind=Kind.SWITCH)
CHANGES = Argument(options=("--changes",), kind=Kind.SWITCH)
CHANGED = Argument(options=("--changes",), kind=Kind.INTEGER)
RETURNS = Argument(options=("--returns",), kind=Kind.TEXT)


def a_schema(version: str, *arguments: Argument) -> Schema:
    return Schema(engine="vllm", version=version, arguments=arguments)


SCHEMAS = (
    a_schema("0.10.0", CHANGED, STAYS),
    a_schema("0.9.1", CHANGES, RETURNS, STAYS),
    a_schema("0.9.0", CHANGES, STAYS),
    a_schema("0.8.0", CHANGES, RETURNS, STAYS),
)


def test_an_argument_is_one_line_for_each_run_of_versions_that_have_it_so() -> None:
    history = history_of(SCHEMAS)
    assert [(one.argument, one.since, one.until) for one in history.spans] == [
        (CHANGES, "", "0.9.1"),
        (CHANGED, "0.10.0", ""),
        (RETURNS, "", "0.8.0"),
        (RETURNS, "0.9.1", "0.9.1"),
        (STAYS, "", ""),
    ]
    assert schemas_of(History.model_validate_json(written(history))) == SCHEMAS


def test_a_schema_that_is_added_replaces_that_of_its_version() -> None:
    added = a_schema("0.9.1", STAYS)
    assert schemas_of(history_of((*SCHEMAS, added)))[1] == added


@pytest.mark.parametrize("engine", ["vllm", "transformers", "sglang", "llama.cpp"])
def test_what_is_shipped_is_written_as_the_script_would(engine: str) -> None:
    shipped = shipped_schemas(EngineName(engine))
    assert schemas_of(history_of(shipped)) == shipped


@pytest.mark.parametrize(
    ("version", "changes"),
    [("", CHANGED), ("1.0", CHANGED), ("0.9.2", CHANGED), ("0.8.5", CHANGES), ("0.7", CHANGES)],
)
def test_a_version_without_a_schema_has_the_arguments_of_its_neighbours(
    version: str, changes: Argument
) -> None:
    found = assumed_schema(version, SCHEMAS)
    assert {one.name: one for one in found.arguments} == {
        "--changes": changes,
        "--returns": RETURNS,
        "--stays": STAYS,
    }
    assert (found.version, found.assumed) == (version, True)
