from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import ValidationError

from moorage.adapters.engines.schemas import check_early
from moorage.common.failures import Failure
from moorage.inventory.fleet import Fleet
from moorage.reports.problems import problems_of
from moorage.spec import ModelSpec
from moorage.spec.arguments import parse_entries
from moorage.spec.tokenize import user_tokens

K = 1000
REFUSED: dict[str, list[str]] = {
    "many": ["--seed 1"] * 1001,
    "long": [f"--chat-template {'x' * 32 * K} y"],
    "digits": [f"--max-model-len {'9' * 65}"],
    "digits by key": [f"--hf-overrides.a {'9' * 5 * K}"],
    "deep JSON": ["--hf-overrides " + "[" * 10 * K],
    "deep JSON by equals": ["--hf-overrides=" + "[" * 10 * K],
    "deep JSON that ends": ["--hf-overrides=" + '{"a":' * 500 + "1" + "}" * 500],
    "deep word": ["--hf-overrides", '{"a":' * 3 * K + "1" + "}" * 3 * K],
    "deep keys": ["--hf-overrides" + ".a" * 10 * K + " 1"],
    "deep keys with equals": ["--hf-overrides" + ".a" * 40 + "=1"],
    "brackets": ["--chat-template " + "[1, " * 900 + "1, " * 9 * K],
    "unknown": [f"--unknown-{number}" for number in range(1000)],
    "unknown and long": [f"--{number}{'x' * 30 * K}" for number in range(30)],
    "stray": ["stray"] * 1000,
    "quotes": ["--compilation-config=" + '{"a": ' + '\\"' * 15 * K],
    "tokens": ["--header " + "eyJ-" * 8 * K + "="],
    "marks of our own": ["--a {} \x1f7\x1f"],
}


def spec_of(args: list[str]) -> ModelSpec:
    engine = {"name": "vllm", "version": "0.32.0", "args": args}
    return ModelSpec.model_validate({"name": "a", "source": "hf://o/a", "engine": engine})


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_beyond_any_bound_are_refused_at_once(name: str, tmp_path: Path) -> None:
    begun = time.process_time()
    with pytest.raises((ValidationError, Failure)) as caught:
        check_early(spec_of(REFUSED[name]), Fleet(), tmp_path)
    error = caught.value
    if isinstance(error, ValidationError):
        messages = list(map(str, problems_of(error, ModelSpec)))
    else:
        messages = str(error).splitlines()
    assert time.process_time() - begun < 5  # a second on a machine that does nothing else
    assert all("engine.args" in message and len(message) < K for message in messages), messages[0]


@pytest.mark.parametrize(
    "args",
    [
        ["--hf-overrides", '{"a": ' * 64 + "1" + "}" * 64],
        [f"--max-model-len {'9' * 30}"],
        ["--max-model-len", "9e99"],
        ["--max-model-len", "99999999999999999T"],
    ],
    ids=str,
)
def test_no_reader_of_values_fails_otherwise_than_told(args: list[str]) -> None:
    found = parse_entries(tuple(args))
    for read in (found.whole_number, found.json_object):
        for option in ("--hf-overrides", "--max-model-len"):
            with suppress(Failure):
                read(option)


TEMPLATE = "{% for m in messages %}{{ '<|' + m['role'] + '|>' }} [ {{ m.content }} {% endfor %}\n"


@pytest.mark.parametrize(
    "args",
    [
        ["--chat-template '" + TEMPLATE.replace("'", '"') * 300 + "'"],
        ["--chat-template", TEMPLATE * 300],
        ["--hf-overrides", '{"a": ' * 30 + "1" + "}" * 30],
        ["--compilation-config.a.b.c.d 1"],
    ],
    ids=["line", "word", "JSON", "keys"],
)
def test_what_engines_are_really_given_is_read(args: list[str]) -> None:
    assert user_tokens(args)


def test_a_count_beyond_every_machine_is_no_number() -> None:
    found = parse_entries((f"--max-model-len {2**63}",))
    with pytest.raises(Failure, match="is more than"):
        found.whole_number("--max-model-len")
