"""The shape of parameters for forms."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import is_valid

from flows.deploy_model import deploy_model
from moorage.reports.form_schema import OPEN_SECTIONS
from moorage.spec import ModelSpec

SCHEMA: dict[str, Any] = parameter_schema(deploy_model).model_dump()
SECTIONS = SCHEMA["definitions"]
DRAWN = {
    f"{name}.{field}": content
    for name in ("ModelSpec", *sorted(OPEN_SECTIONS))
    for field, content in SECTIONS[name]["properties"].items()
}
"""Fields that a form draws."""

BASE = {"name": "tiny", "source": "file:///srv/tiny"}


def test_it_is_a_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_no_drawn_field_has_a_kind_without_an_input() -> None:
    for name, field in DRAWN.items():
        kinds = field.get("anyOf", [field])
        assert not [one for one in kinds if one.get("type") == "null" or "const" in one], name


def test_what_takes_a_text_and_a_number_starts_with_the_text() -> None:
    context, shm = DRAWN["ModelSpec.context"], DRAWN["EngineSpec.shm"]
    assert [kind["type"] for kind in context["anyOf"]] == ["string", "integer"]
    assert context["default"] == "auto"
    assert (shm["anyOf"][0]["type"], shm["default"]) == ("string", "10GiB")


def test_few_sections_are_drawn_and_the_others_are_one_field() -> None:
    drawn = {one["$ref"].rpartition("/")[2] for one in DRAWN.values() if "$ref" in one}
    sections = {name for name in drawn if "properties" in SECTIONS[name]}
    assert sections == OPEN_SECTIONS
    assert not [
        one for one in DRAWN.values() if "$ref" in one and isinstance(one.get("default"), dict)
    ]
    closed = DRAWN["EngineSpec.container"]
    assert (closed["type"], "properties" in closed) == ("object", False)
    assert "As JSON, with the fields user, " in closed["description"]


@pytest.mark.parametrize(
    "more",
    [
        {"context": 4096, "engine": {"shm": 1 << 30}},
        {"context": "4096", "engine": {"shm": "1GiB"}},
        {"revision": None, "speculative": None, "schedule": None},
        {"placement": {"accelerators": "2", "ram": "3GiB", "hosts": "auto"}},
        {"placement": {"accelerators": ["local:cuda:0"], "ram": 4096}},
        {"memory": {"claim": "2GiB", "nccl": None}, "engine": {"container": {"cores": 2}}},
    ],
)
def test_a_server_and_the_spec_accept_the_same(more: dict[str, Any]) -> None:
    spec = {**BASE, **more}
    ModelSpec.model_validate(spec)
    assert is_valid({"spec": spec}, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": "long"},
        {"engine": {"container": {"cores": "many"}}},
        {"restart": {"polcy": "always"}},
        {"revision": ""},
    ],
)
def test_both_refuse_the_same(wrong: dict[str, Any]) -> None:
    assert not is_valid({"spec": {**BASE, **wrong}}, SCHEMA)
