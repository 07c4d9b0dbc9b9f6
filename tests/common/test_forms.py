from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from moorage.common.values import Value, in_words
from moorage.inventory.fleet import Fleet
from moorage.spec import ModelSpec


class KitchenSpec(Value):
    size: int = 3


class HouseSpec(Value):
    """A house."""

    kitchen: KitchenSpec = Field(KitchenSpec(), description="Where one cooks.")
    rooms: tuple[KitchenSpec, ...] = ()
    keep_cats: bool = False
    street: str


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("keep_cache", "Keep cache"),
        ("api_key", "API key"),
        ("lora_updates", "LoRA updates"),
        ("extended_kv_cache", "Extended KV cache"),
        ("env", "Environment"),
    ],
)
def test_a_name_as_people_write_it(name: str, heading: str) -> None:
    assert in_words(name) == heading


def test_what_must_be_said_comes_first_and_whole_sections_come_last() -> None:
    assert titles(HouseSpec.model_json_schema()) == ["Street", "Keep cats", "Kitchen", "Rooms"]


def test_a_section_is_named_as_its_field_and_not_as_its_class() -> None:
    schema = HouseSpec.model_json_schema()
    assert schema["properties"]["kitchen"]["title"] == "Kitchen"
    assert (schema["title"], schema["$defs"]["KitchenSpec"]["title"]) == ("House", "Kitchen")


def test_the_form_of_a_model_begins_with_what_people_fill_in() -> None:
    named = titles(ModelSpec.model_json_schema())
    assert named[:6] == ["Name", "Source", "Revision", "Files", "Context", "Concurrency"]
    assert named.index("Trust remote code") < named.index("Engine")


@pytest.mark.parametrize("model", [ModelSpec, Fleet])
def test_every_field_has_a_title_and_a_place_of_its_own(model: type[Value]) -> None:
    whole = model.model_json_schema()
    for schema in (whole, *whole["$defs"].values()):
        fields = schema.get("properties", {}).values()
        assert sorted(field["position"] for field in fields) == list(range(len(fields)))
        assert all(field["title"][0].isupper() for field in fields)


def titles(schema: dict[str, Any]) -> list[str]:
    fields = schema["properties"].values()
    return [field["title"] for field in sorted(fields, key=lambda field: field["position"])]
