"""The arguments of `transformers serve`: judged as its own command judges them."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.schema_store import SchemaStore, shipped_schemas
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import Judgement, judge
from moorage.engines.schema.reading import read
from moorage.engines.transformers.engine import Transformers
from moorage.spec import EngineName
from moorage.spec.tokenize import is_option, user_tokens
from tests.engines.schema.shipped import assert_mistake
from tests.engines.schema.writings import writings

HERE = importlib.metadata.version("transformers")
SECONDS = 120

TAKEN = (
    "--device cuda:0 --dtype=bfloat16",
    "--continuous-batching --no-compile --cb-use-cuda-graph",
    "--cb-max-memory-percent 0.5 --cb-block-size 64",
    "--default-seed -1",
    '--chat-template-kwargs {"enable_thinking":true}',
    "--reasoning off --model-timeout 60",
)

MISTAKES = (
    ("--max-model-len=12", "--max-model-len", "does not know it", "`--model-timeout`"),
    ("--continous-batching", "--continous-batching", "does not know", "`--continuous-batching`"),
    ("--model_timeout 3", "--model_timeout", "does not know it", "`--model-timeout`"),
    ("--continuous", "--continuous", "does not know it", ""),
    ("--compile.mode 3", "--compile.mode", "does not know it", "`--compile`"),
    ("-O3", "-O3", "does not know it", ""),
    ("--model-timeout soon", "--model-timeout", "'soon' is not a whole number", ""),
    ("--cb-max-memory-percent 90%", "--cb-max-memory-percent", "'90%' is not a number", ""),
    ("--reasoning ON", "--reasoning", "is not one of auto, off, on", "`on`"),
    ("--compile=true", "--compile", "takes no value", "`--no-compile`"),
    ("--default-seed", "--default-seed", "its value is missing", ""),
    ("stray", "stray", "belongs to no option", ""),
)

RESERVED = (
    ("--port 8000", "Use `port` instead."),
    ("--host 0.0.0.0", "Use `hosts[].bind` instead."),
    ("-h", "Leave it out."),
    ("--non-blocking", "Leave it out."),
)

NOTED = (
    ("--device cuda:1", "--device wins over `placement`"),
    ("--no-trust-remote-code", "--no-trust-remote-code wins over `trust_remote_code`"),
)


@pytest.mark.parametrize("entry", TAKEN)
def test_what_its_command_takes_is_taken(entry: str) -> None:
    assert judged(entry).problems == ()


@pytest.mark.parametrize(("entry", "option", "message", "suggestion"), MISTAKES)
def test_a_mistake_is_named_with_what_was_meant(
    entry: str, option: str, message: str, suggestion: str
) -> None:
    assert_mistake(judged(entry), option, message, suggestion)


@pytest.mark.parametrize(("entry", "suggestion"), RESERVED)
def test_what_moorage_sets_is_refused_with_the_field_to_use(entry: str, suggestion: str) -> None:
    (problem,) = judged(entry).problems
    assert problem.suggestion == suggestion


@pytest.mark.parametrize(("entry", "note"), NOTED)
def test_what_a_field_says_too_is_taken_and_noted(entry: str, note: str) -> None:
    judgement = judged(entry)
    assert judgement.problems == ()
    assert note in " ".join(judgement.notes)


def test_an_argument_of_a_newer_version_names_that_version() -> None:
    (problem,) = judged("--decision-config /labels.json", version="5.19.0").problems
    assert problem.message == "transformers 5.19.0 does not know it yet; it came with 5.20.0"


def test_the_shipped_schema_is_what_the_installed_version_says() -> None:
    extracted = Schema.model_validate_json(command_here()["schema"])
    assert extracted == schema_of(HERE)


def test_its_own_command_judges_the_same() -> None:
    schema = schema_of(HERE)
    pairs = list(zip(lines(), command_here()["refusals"], strict=True))
    assert [pair for pair in pairs if takes(schema, pair[0]) == bool(pair[1])] == []
    refused = sum(bool(answer) for _, answer in pairs)
    assert len(pairs) > 200
    assert 0.2 < refused / len(pairs) < 0.8


def judged(entry: str, version: str = "5.24.0") -> Judgement:
    rules = Transformers.argument_rules
    assert rules
    every = partial(shipped_schemas, EngineName.TRANSFORMERS)
    return judge(user_tokens([entry]), schema_of(version), rules, every)


def schema_of(version: str) -> Schema:
    schema = SchemaStore(Path("/nowhere"), EngineName.TRANSFORMERS).of_version(version)
    if schema is None:
        pytest.skip(f"the arguments of transformers {version} are not shipped")
    return schema


def takes(schema: Schema, words: list[str]) -> bool:
    reading = read(tuple(words), schema)
    return not (reading.problems or reading.unknown or reading.stray)


def lines() -> list[list[str]]:
    """Lines of the tables, and lines by chance.

    Those with several options are left out: click takes a word such as `--compile` for the value of
    the option before it. moorage does not.
    """
    written = [list(user_tokens([entry])) for entry in (*TAKEN, *(row[0] for row in MISTAKES))]
    by_chance = writings(schema_of(HERE), 400, seed=7)
    return written + [line for line in by_chance if sum(map(is_option, line)) == 1]


@cache
def command_here() -> dict[str, Any]:
    """What the installed command says of itself, and to each of the lines."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.transformers.parse_lines"],
        input=json.dumps(lines()),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
