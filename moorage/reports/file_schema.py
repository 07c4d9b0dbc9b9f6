"""JSON Schemas of users' files, for editors."""

import json
from typing import Any

from moorage.common.units import DURATION_PATTERN, SIZE_PATTERN
from moorage.reports.field_reference import FILES
from moorage.reports.problems import PATTERNS_IN_WORDS
from moorage.spec.keep_alive import PATTERN as KEEP_ALIVE_PATTERN

SCHEMAS = ".schemas"
"""Folder of the schemas, next to users' files."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FOR_FORMS = frozenset({"position", "title"})
"""Keywords that only the forms of the Prefect UI need."""

BY_NAME = frozenset({"$defs", "patternProperties", "properties"})
"""Keywords whose value maps names to schemas."""

SHORT_FORMS = {"spec": {"engine": "EngineName"}}
"""By file: sections that also accept a single word, and the definition that lists the words."""

IN_WORDS = {
    **PATTERNS_IN_WORDS,
    SIZE_PATTERN: "a size such as 16GiB",
    DURATION_PATTERN: "a duration such as 500ms, 30s or 1h30m",
    KEEP_ALIVE_PATTERN: "a duration such as 30s, 5m or 1h30m, 0, or never",
}
"""What each pattern requires, in the words of an error message."""


def file_schema(file: str) -> str:
    """The schema of a file as text.

    It rejects unknown fields, and wrong types, words and ranges. Only `moorage plan` checks fields
    against each other, cron expressions and time zones.

    Args:
        file: A key of `FILES`: `spec`, `fleet` or `policy`.
    """
    title, model = FILES[file]
    schema = _for_editors(model.model_json_schema())
    for field, word in SHORT_FORMS.get(file, {}).items():
        section = schema["properties"][field]
        section["anyOf"] = [{"$ref": f"#/$defs/{word}"}, {"$ref": section.pop("$ref")}]
    return json.dumps({"$schema": DIALECT, **schema, "title": title}, indent=2) + "\n"


def _for_editors(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model without the keywords that only the forms of the Prefect UI need.

    A key of a mapping has to match its pattern. Each pattern gets an error message that editors
    show.
    """
    kept = {
        keyword: _part(keyword, value)
        for keyword, value in schema.items()
        if keyword not in FOR_FORMS and not (keyword == "default" and _is_section(value))
    }
    if "patternProperties" in kept:
        kept.setdefault("additionalProperties", False)
    if words := IN_WORDS.get(kept.get("pattern", "")):
        kept["patternErrorMessage"] = f"Allowed: {words}."
    return kept


def _part(keyword: str, value: Any) -> Any:
    if keyword in BY_NAME:
        return {name: _for_editors(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_for_editors(part) if isinstance(part, dict) else part for part in value]
    return _for_editors(value) if isinstance(value, dict) else value


def _is_section(default: Any) -> bool:
    """Whether a default is null, or only repeats the defaults of nested fields."""
    parts = default if isinstance(default, list) else [default]
    return default is None or any(isinstance(part, dict) for part in parts)
