"""The shape of parameters for forms."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import is_valid
from pydantic import TypeAdapter

from flows.deploy_model import deploy_model
from moorage.reports.form_parameters import SpecParameter
from moorage.reports.form_schema import ADVANCED, CLOSED
from moorage.spec import ModelSpec

SCHEMA: dict[str, Any] = parameter_schema(deploy_model).model_dump()
SECTIONS = SCHEMA["definitions"]
DRAWN = {
    f"{name}.{field}": content
    for name in ("ModelSpec", "EngineSpec", "PlacementSpec")
    for field, content in SECTIONS[name]["properties"].items()
} | {
    f"advanced.{field}": content
    for field, content in SECTIONS["ModelSpec"]["properties"][ADVANCED]["anyOf"][1][
        "properties"
    ].items()
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


def test_each_section_is_closed_until_its_tab_is_opened() -> None:
    for name, field in DRAWN.items():
        kinds = field.get("anyOf", [field])
        if "properties" in SECTIONS.get(kinds[-1].get("$ref", "").rpartition("/")[2], {}):
            first = {**kinds[0], "description": ""}
            assert first == {**CLOSED, "description": ""} or first["enum"][0] == "auto", name
            assert kinds[0]["description"] == kinds[-1]["description"] != "", name
            assert "default" not in field, name


def test_a_form_of_a_spec_draws_the_usual_fields_and_one_section_of_the_others() -> None:
    spec = SECTIONS["ModelSpec"]
    drawn = sorted(spec["properties"], key=lambda name: spec["properties"][name]["position"])
    assert drawn[:4] == ["name", "source", "engine", "placement"]
    assert drawn[-1] == ADVANCED
    others = spec["properties"][ADVANCED]["anyOf"][1]["properties"]
    assert {*drawn[:-1], *others} == set(ModelSpec.model_fields)
    assert len(drawn) < 12


def test_advanced_fields_of_a_form_are_fields_of_the_spec() -> None:
    given = {**BASE, ADVANCED: {"port": "29720", "restart": {"policy": "never"}}}
    assert is_valid({"spec": given}, SCHEMA)
    spec = TypeAdapter(SpecParameter).validate_python(given)
    assert (spec.port, spec.restart.policy) == (29720, "never")
    assert spec == TypeAdapter(SpecParameter).validate_python(spec)


def test_the_fleet_is_in_no_form_and_the_api_checks_it() -> None:
    assert set(SCHEMA["properties"]) == {"spec", "force", "requested_by"}
    assert is_valid({"spec": BASE, "fleet": {"hosts": [{"name": "a"}]}}, SCHEMA)
    assert not is_valid({"spec": BASE, "fleet": {"hsts": []}}, SCHEMA)
    assert not is_valid({"spec": BASE, "flet": {}}, SCHEMA)


@pytest.mark.parametrize(
    "more",
    [
        {"context": 4096, "engine": {"shm": 1 << 30}},
        {"context": "4096", "engine": {"shm": "1GiB"}},
        {"revision": None, "speculative": None, "schedule": None},
        {"placement": {"accelerators": "2", "ram": "3GiB", "hosts": "auto"}},
        {"placement": {"accelerators": ["local:cuda:0"], "ram": 4096}},
        {"engine": "vllm", "placement": {}},
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
        {"engine": "vlm"},
        {"restart": {"polcy": "always"}},
        {ADVANCED: {"restart": {"polcy": "always"}}},
        {"revision": ""},
    ],
)
def test_both_refuse_the_same(wrong: dict[str, Any]) -> None:
    assert not is_valid({"spec": {**BASE, **wrong}}, SCHEMA)
