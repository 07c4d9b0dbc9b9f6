"""What differs between two specs, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from moorage.operations.history.change import Change, changes, written
from moorage.spec import ModelSpec

VARIABLES = "engine.env."
"""Fields whose values are not shown: what is written there may be nobody's business."""

VALUE, OTHER_VALUE = "(a value)", "(another value)"


def spec_changes(before: ModelSpec, after: ModelSpec) -> tuple[Change, ...]:
    """Fields that differ, by their path, with the values that count: defaults are filled in."""
    return tuple(map(_without_values, changes(_fields(before), _fields(after))))


def _without_values(change: Change) -> Change:
    if not change.what.startswith(VARIABLES):
        return change
    before = None if change.before is None else VALUE
    after = None if change.after is None else VALUE
    return change.model_copy(
        update={"before": before, "after": OTHER_VALUE if before and after else after}
    )


def _fields(spec: ModelSpec) -> dict[str, str]:
    return dict(_leaves(spec.model_dump(mode="json"), ""))


def _leaves(content: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each field that holds something, by its path; of a list of named things each by its name."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(content, list) and content and isinstance(content[0], dict):
        for index, value in enumerate(content):
            yield from _leaves(value, f"{path}[{value.get('name', index)}]")
    elif content is not None and content not in ([], ""):
        yield path, _text(content)


def _text(content: Any) -> str:
    if isinstance(content, list):
        # An entry of `engine.args` may hold an option and its value.
        return written([word for entry in content for word in str(entry).split()])
    return content if isinstance(content, str) else json.dumps(content)
