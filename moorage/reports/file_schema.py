"""JSON Schemas of the files that users write, for editors."""

import json
from typing import Any

from moorage.common.units import DURATION_PATTERN, SIZE_PATTERN
from moorage.reports.field_reference import FILES
from moorage.reports.problems import PATTERNS_IN_WORDS
from moorage.spec.keep_alive import PATTERN as KEEP_ALIVE_PATTERN

SCHEMAS = ".schemas"
"""Folder beside the files of users that holds their schemas."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FOR_FORMS = frozenset({"position", "title"})
"""Keywords that make the form of the Prefect UI."""

BY_NAME = frozenset({"$defs", "patternProperties", "properties"})
"""Keywords whose value is a schema for each name."""

SHORT_FORMS = {"spec": {"engine": "EngineName"}}
"""Of each file: fields that are a section, or in short a word that this definition allows."""

IN_WORDS = {
    **PATTERNS_IN_WORDS,
    SIZE_PATTERN: "a size such as 16GiB",
    DURATION_PATTERN: "a duration such as 500ms, 30s or 1h30m",
    KEEP_ALIVE_PATTERN: "a duration such as 30s, 5m or 1h30m, 0, or never",
}
"""What each pattern asks for, in the words of an error message."""


def file_schema(file: str) -> str:
    """The schema of a file as text.

    It refuses unknown fields, wrong types, words and ranges. What several fields mean together, and
    whether a cron expression or a time zone exists, `moorage plan` checks.

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
    """The schema of a model without what only the form of the Prefect UI needs.

    A key of a mapping has to match its pattern. What a pattern asks for stands in words beside it,
    which editors show.
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
    """Whether a default only repeats those of the fields inside, or is none."""
    parts = default if isinstance(default, list) else [default]
    return default is None or any(isinstance(part, dict) for part in parts)
