"""Mistakes in parameters, told by what a schema allows."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator

from moorage.adapters.prefect.parameter_errors import mistakes

SIZE = {"type": "string", "pattern": "^[0-9]+GiB$", "patternErrorMessage": "Allowed: a size."}
SCHEMA = {
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "ram": {"anyOf": [SIZE, {"type": "integer"}]},
        "engine": {"enum": ["vllm", "sglang"]},
        "kinds": {"anyOf": [{"const": "auto"}, {"items": {"enum": ["cuda"]}, "type": "array"}]},
        "labels": {"patternProperties": {"^[a-z]$": {}}, "additionalProperties": False},
        "port": {"minimum": 1},
        "env": {"not": {"pattern": "^hf_", "patternErrorMessage": "holds a secret"}},
        "restart": {
            "anyOf": [
                {"enum": ["never"], "type": "string"},
                {"properties": {"policy": {}}, "additionalProperties": False, "type": "object"},
            ]
        },
    },
    "patternProperties": {"^fleet$": {}},
}


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        ({"ram": "much"}, ["ram"], "found 'much'; allowed: a size, or integer."),
        ({"name": "X"}, ["name"], "found 'X'; allowed: a text that matches ^[a-z]+$."),
        (
            {"engine": "vlm"},
            ["engine"],
            "found 'vlm'; allowed: vllm, sglang. Did you mean 'vllm'?",
        ),
        ({"kinds": ["cpu"]}, ["kinds", 0], "found 'cpu'; allowed: cuda."),
        ({"kinds": 1}, ["kinds"], "found 1; allowed: auto, or array."),
        ({"labels": {"A": 1, "b": 2}}, ["labels", "A"], "unknown key."),
        (
            {"restart": {"polcy": 1}},
            ["restart", "polcy"],
            "unknown key; allowed are policy. Did you mean 'policy'?",
        ),
        (
            {"restart": "nver"},
            ["restart"],
            "found 'nver'; allowed: never, or object. Did you mean 'never'?",
        ),
        ({"env": "hf_A1b2"}, ["env"], "holds a secret."),
        ({"port": 0}, ["port"], "0 is less than the minimum of 1."),
        ({"name": "x" * 60 + "1"}, ["name"], None),
    ],
)
def test_a_mistake_names_what_is_allowed(
    wrong: dict[str, Any], path: list[Any], message: str | None
) -> None:
    (found,) = mistakes(Draft202012Validator(SCHEMA).iter_errors({"name": "a", **wrong}))
    assert list(found.path) == path
    assert found.message == message or (message is None and "...; allowed" in found.message)


def test_a_key_that_is_nearly_right_is_named_beside_the_one_that_is_missing() -> None:
    found = list(mistakes(Draft202012Validator(SCHEMA).iter_errors({"nme": "a"})))
    assert {one.message for one in found} == {
        "'name' is required, but missing.",
        "unknown key; allowed are engine, env, fleet, kinds, labels, name, port, ram, restart."
        " Did you mean 'name'?",
    }
