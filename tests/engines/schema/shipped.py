"""The schemas that moorage ships, and words held against them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from moorage.adapters.engines.schema_store import SchemaStore, shipped_schemas
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import Judgement, judge
from moorage.engines.vllm.engine import Vllm
from moorage.spec.tokenize import user_tokens

STORE = SchemaStore(Path("/nowhere"))
RULES = Vllm.argument_rules
assert RULES


@cache
def shipped() -> tuple[Schema, ...]:
    return shipped_schemas()


def schema_of(version: str) -> Schema:
    schema = STORE.of_version(version)
    assert schema, version
    return schema


def judged(*entries: str, version: str = "0.32.0") -> Judgement:
    """The judgement of entries of `engine.args`."""
    return judge(user_tokens(entries), schema_of(version), RULES, shipped)


def assert_mistake(judgement: Judgement, option: str, message: str, suggestion: str) -> None:
    """It names one mistake: its option, what is wrong, and what was meant."""
    (problem,) = judgement.problems
    assert problem.option == option
    assert message in problem.message
    assert suggestion in problem.suggestion
