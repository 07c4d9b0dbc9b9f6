"""The schema of a flow's parameters for the forms of the Prefect UI: few and plain inputs.

A form draws each field of each section, and tabs where a field accepts several kinds of value. In
this schema an optional field has one kind, `auto` and sizes are texts, and a section is collapsed:
its first tab draws nothing, its second tab the fields. Rarely needed fields of a spec are in the
section `advanced`, which only forms have; the fleet is not drawn at all. A server still accepts
all fields at their own places, and numbers as texts.
"""

from collections.abc import Mapping
from typing import Any

from moorage.common.units import SIZE_PATTERN, exact_size
from moorage.operations.redeploy.selection import PATTERNS_IN_WORDS
from moorage.reports.file_schema import IN_WORDS

Schema = dict[str, Any]

USUAL = {
    "ModelSpec": (
        *("name", "source", "engine", "placement", "revision", "files"),
        *("context", "replicas", "keep_alive", "secrets"),
    )
}
"""By section: the fields that a form draws, in order. The others are in `ADVANCED`."""

ADVANCED = "advanced"
"""The section of the form that holds the other fields."""

SHORT_FORMS = {"Engine": "EngineName"}
"""Sections, by title, that also accept a single word, and the definition that lists the words."""

CLOSED: Schema = {"title": "Default", "type": "object", "properties": {}, "maxProperties": 0}
"""The tab that leaves a section unchanged. Without `properties`, a form draws a JSON input."""

REFERENCE = "#/definitions/"
NOT_DRAWN = "notDrawn"
NUMBER = r"^[0-9]+$"

WORDS = {**IN_WORDS, **PATTERNS_IN_WORDS, NUMBER: "a number"}


def form_schema(schema: Schema) -> Schema:
    """A schema of parameters, reshaped for forms; its definitions are the sections."""
    definitions = schema.get("definitions", {})
    shaped = {name: _shaped_section(name, definitions) for name in definitions}
    fields = {name: _plain(field) for name, field in schema.get("properties", {}).items()}
    # A form draws only `properties`; a validator also accepts the hidden fields.
    hidden = {name: {"$ref": one["$ref"]} for name, one in fields.items() if NOT_DRAWN in one}
    drawn = {name: field for name, field in fields.items() if name not in hidden}
    return _hiding(hidden, {**schema, "properties": drawn, "definitions": shaped})


def _hiding(fields: Mapping[str, Schema], schema: Schema) -> Schema:
    """A schema that also accepts fields that a form does not draw."""
    patterns = {f"^{name}$": field.get("then", field) for name, field in fields.items()}
    return {**schema, "patternProperties": patterns} if patterns else schema


def _shaped_section(name: str, definitions: Mapping[str, Schema]) -> Schema:
    section = definitions[name]
    if (fields := section.get("properties")) is None:
        return section
    shaped = {name: _closed(_plain(field), definitions) for name, field in fields.items()}
    if (usual := USUAL.get(name)) is None:
        return {**section, "properties": shaped}
    others = {field: shaped[field] for field in shaped if field not in usual}
    drawn = {field: {**shaped[field], "position": at} for at, field in enumerate(usual)}
    drawn[ADVANCED] = {**_advanced(others), "position": len(usual)}
    return _hiding(others, {**section, "properties": drawn})


def _advanced(fields: Mapping[str, Schema]) -> Schema:
    text = {"description": f"Rarely needed: {', '.join(fields)}."}
    inside = {"title": "Fields", "type": "object", "properties": fields, **text}
    tabs = [{**CLOSED, **text}, {**inside, "additionalProperties": False}]
    return {"title": "Advanced", "anyOf": tabs}


def _closed(field: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """A section as two tabs: empty (or its short form), and its fields; other fields unchanged."""
    reference = field.get("$ref", "")
    section = definitions.get(reference.removeprefix(REFERENCE), {})
    if not section.get("properties"):
        return field
    short = definitions.get(SHORT_FORMS.get(section["title"], ""))
    first = {**short, "title": "Name", "default": short["enum"][0]} if short else CLOSED
    # The Prefect UI shows the description of the open tab below the field's own.
    text = {"description": field.get("description", section.get("description", ""))}
    tabs = [{**first, **text}, {"$ref": reference, **text}]
    closed = {"title": field["title"], "position": field["position"], "anyOf": tabs}
    if "default" in field:
        return closed
    # No default means null here. A server then accepts null; `then` repeats that for the tabs.
    return {**closed, "type": "object", "if": True, "then": {"anyOf": [*tabs, {"type": "null"}]}}


def _plain(field: Schema) -> Schema:
    """A field without null among its kinds; its text, where it accepts one, is the first kind."""
    if "pattern" in field:
        return {**field, **_in_words(field["pattern"])}
    kinds = [kind for kind in field.get("anyOf", ()) if kind.get("type") != "null"]
    kept = {word: value for word, value in field.items() if word != "anyOf"}
    if len(kinds) == 1 and "default" in field and field["default"] is None:
        # A server accepts null for a field without a default.
        del kept["default"]
        return _plain({**kinds[0], **kept})
    if len(kinds) < len(field.get("anyOf", ())) or not (text := _text(kinds)):
        return field
    others = [kind for kind in kinds if kind.get("type") != "string"]
    if isinstance(default := field.get("default"), int):
        kept["default"] = exact_size(default)
    return {**kept, "anyOf": [text, *others]}


def _text(kinds: list[Schema]) -> Schema:
    """One text schema for all words and numbers of a field; empty where it accepts no text."""
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
