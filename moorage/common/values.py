"""The base of all values: frozen, strict, and shown as a form in the Prefect UI."""

from __future__ import annotations

import re
from enum import StrEnum
from operator import attrgetter
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

WRITTEN = {
    **{word: word.upper() for word in ("api", "cuda", "ipc", "kv", "nccl", "ram", "ssh", "tls")},
    **{"args": "arguments", "env": "environment", "lora": "LoRA", "shm": "shared memory"},
}
"""Words of field names that people write otherwise."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


def as_form(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Name every field of a schema and say where it stands; for `json_schema_extra`.

    A field that is a model of its own has no name in its schema, and the form would show that of
    the class. Its place is said by `position`, for PostgreSQL keeps no order of keys. What needs an
    answer comes first, then what is one value, then whole sections.
    """
    schema["title"] = in_words(" ".join(_WORD.findall(model.__name__.removesuffix("Spec"))))
    ranks = {name: _rank(model, name) for name in schema.get("properties", {})}
    for position, name in enumerate(sorted(ranks, key=lambda name: ranks[name])):
        schema["properties"][name].update(title=in_words(name), position=position)


def in_words(name: str) -> str:
    """A field's name as a heading: `keep_cache` is `Keep cache`."""
    words = name.lower().replace("_", " ").split()
    heading = " ".join(WRITTEN.get(word, word) for word in words)
    return heading[:1].upper() + heading[1:]


def _rank(model: type[BaseModel], name: str) -> int:
    field = model.model_fields[name]
    return 0 if field.is_required() else 2 if _has_model(field.annotation) else 1


def _has_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_has_model, get_args(annotation)))


class Value(BaseModel):
    """A frozen value. Unknown keys are refused, so that a typo never passes silently."""

    # What was written wrong may be a secret: an error does not repeat it, wherever it is logged.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, json_schema_extra=as_form
    )


fields = attrgetter("__dict__")
"""The fields of a value by name: to read several of thousands of values takes half the time."""


class Origin(StrEnum):
    """Where a derived value comes from; every flag, variable and choice carries one."""

    USER = "user"
    """The spec says so."""

    DEFAULT = "default"
    """Nobody said anything; this is the documented default."""

    DERIVED = "derived"
    """Worked out from the model, the host or the placement."""
