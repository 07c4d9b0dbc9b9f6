"""The schema of a flow's parameters, shaped for the forms of the Prefect UI: few and plain inputs.

A form draws each field of each section, and tabs where a field takes several kinds of value. Here
an optional field has one kind, `auto` and sizes are texts, and a section that few people fill in is
one field of JSON. A server accepts what it accepted before, and numbers as texts as well.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from moorage.common.units import SIZE_PATTERN, exact_size
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.selection import PATTERNS_IN_WORDS
from moorage.reports.file_schema import IN_WORDS

OPEN_SECTIONS = frozenset({"EngineSpec", "PlacementSpec"})
"""Sections of a spec whose fields are drawn one by one."""

REFERENCE = "#/definitions/"
NUMBER = r"^[0-9]+$"

WORDS = {**IN_WORDS, **PATTERNS_IN_WORDS, NUMBER: "a number"}

Schema = dict[str, Any]


class _OneField:
    """Has a form take the fleet as JSON, instead of a field for each field of each host.

    The pages look at `type` alone, and a validator at `then` too.
    """

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "if": True, "then": handler(core)}


FleetParameter = Annotated[Fleet, _OneField()]
"""The parameter `fleet` of flows."""

THIS_MACHINE = Fleet()
"""Its default: the hosts of the worker where the policy names them, else its machine."""


def form_schema(schema: Schema) -> Schema:
    """A schema of parameters in the shape for forms; its definitions are those of the sections."""
    definitions = schema.get("definitions", {})
    shaped = {name: _shaped_section(one, definitions) for name, one in definitions.items()}
    fields = {name: _plain(field) for name, field in schema.get("properties", {}).items()}
    return {**schema, "properties": fields, "definitions": shaped}


def _shaped_section(section: Schema, definitions: Mapping[str, Schema]) -> Schema:
    fields = section.get("properties")
    if fields is None:
        return section
    shaped = {name: _subsection(_plain(field), definitions) for name, field in fields.items()}
    return {**section, "properties": shaped}


def _subsection(field: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """A section whose fields have their own defaults, or one field of JSON where it is not drawn.

    The pages look at `type` alone, and a validator at `then` too.
    """
    name = str(field.get("$ref", "")).removeprefix(REFERENCE)
    inside = definitions.get(name, {}).get("properties")
    if not inside:
        return field
    if name in OPEN_SECTIONS:
        return {word: value for word, value in field.items() if word != "default"}
    kept: Schema = {word: field[word] for word in ("title", "position") if word in field}
    text = f"{field.get('description', '')} As JSON, with the fields {', '.join(inside)}.".strip()
    then = {"anyOf": [{"$ref": field["$ref"]}, {"type": "null"}]}
    return {**kept, "description": text, "type": "object", "if": True, "then": then}


def _plain(field: Schema) -> Schema:
    """A field without a choice between a value and none, which starts with its text."""
    if "pattern" in field:
        return {**field, **_in_words(field["pattern"])}
    kinds = [kind for kind in field.get("anyOf", ()) if kind.get("type") != "null"]
    kept = {word: value for word, value in field.items() if word != "anyOf"}
    if len(kinds) == 1 and "default" in field and field["default"] is None:
        # A server lets a field without a default be null.
        del kept["default"]
        return _plain({**kinds[0], **kept})
    if len(kinds) < len(field.get("anyOf", ())) or not (text := _text(kinds)):
        return field
    others = [kind for kind in kinds if kind.get("type") != "string"]
    if isinstance(default := field.get("default"), int):
        kept["default"] = exact_size(default)
    return {**kept, "anyOf": [text, *others]}


def _text(kinds: list[Schema]) -> Schema:
    """The text that stands for all words and numbers of a field; empty where it takes no text."""
    texts = [kind for kind in kinds if kind.get("type") == "string"]
    words = [str(kind["const"]) for kind in texts if "const" in kind]
    patterns = [kind["pattern"] for kind in texts if "pattern" in kind]
    if not texts or len(words) + len(patterns) < len(texts) or set(patterns) - {SIZE_PATTERN}:
        return {}
    if not patterns and any(kind.get("type") == "integer" for kind in kinds):
        patterns = [NUMBER]
    allowed = ", or ".join([*words, *(WORDS[pattern] for pattern in patterns)])
    pattern = "|".join([*(f"^{word}$" for word in words), *patterns])
    return {"type": "string", "pattern": pattern, "patternErrorMessage": f"Allowed: {allowed}."}


def _in_words(pattern: str) -> Schema:
    return {"patternErrorMessage": f"Allowed: {WORDS[pattern]}."} if pattern in WORDS else {}
