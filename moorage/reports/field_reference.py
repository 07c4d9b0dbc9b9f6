"""Reference of the fields in users' files: type, default and meaning of each."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from moorage.common.failures import Cause, Failure
from moorage.common.printable import clipped
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.inventory.fleet import Fleet
from moorage.policy.rules import Policy
from moorage.reports.problems import LONGEST, inner_model
from moorage.spec import ModelSpec

FILES: dict[str, tuple[str, type[BaseModel]]] = {
    "spec": ("Model spec", ModelSpec),
    "fleet": ("Fleet file", Fleet),
    "policy": ("Policy file", Policy),
}
"""Title and model of each kind of file, by its short name."""


INDEX = re.compile(r"\[\d+\]")
"""The place of an item in a list, as failures name it."""

NESTED, REQUIRED = "see below", "required"
"""Type of a field with fields of its own, and the text in place of a missing default."""


class FieldDescription(Value):
    """Type, default and meaning of one field, as Markdown."""

    kind: str
    default: str
    text: str


class Explained(Value):
    """The description of a field or a whole file.

    Attributes:
        path: Path of the field, such as `placement.ram` or `fleet.hosts.ports`.
    """

    path: str
    text: str
    kind: str = ""
    default: str = ""
    fields: dict[str, FieldDescription] = {}


def explain(path: str) -> Explained:
    """Describe a field of the file that its path begins with, else of the first file that has it.

    Args:
        path: As a failure names it: `hosts[0].ports` is `hosts.ports`.

    Raises:
        Failure: `BAD_SETTING` where no such field exists; it suggests the nearest one.
    """
    plain = INDEX.sub("", path.strip("."))
    first, _, rest = plain.partition(".")
    places = [(first, rest)] if first in FILES else [(file, plain) for file in FILES]
    file, inner = next((place for place in places if _has(*place)), places[0])
    parts = dict(models_in(FILES[file][1]))
    holder, _, name = inner.rpartition(".")
    if not _has(file, inner):
        raise _unknown(plain, [file for file, _ in places])
    fields = fields_of(parts[holder])
    inside = fields_of(parts[inner]) if inner in parts else {}
    shown = inner if file == "spec" and inner else f"{file}.{inner}".rstrip(".")
    if not inner:
        return Explained(path=shown, text=FILES[file][0], fields=inside)
    own = fields[name]
    return Explained(path=shown, text=own.text, kind=own.kind, default=own.default, fields=inside)


def _has(file: str, inner: str) -> bool:
    holder, _, name = inner.rpartition(".")
    parts = dict(models_in(FILES[file][1]))
    return not inner or (holder in parts and name in parts[holder].model_fields)


def _unknown(path: str, files: Sequence[str]) -> Failure:
    known = [
        f"{'' if file == 'spec' else file}.{place}.{name}".replace("..", ".").lstrip(".")
        for file in files
        for place, model in models_in(FILES[file][1])
        for name in model.model_fields
    ]
    ends = [one for one in known if one.rpartition(".")[2] == path.rpartition(".")[2]]
    near = ends[:1] or get_close_matches(path, [*known, *Cause], n=1)
    return Failure(
        Cause.BAD_SETTING,
        f"there is no field and no cause '{clipped(path, LONGEST)}'",
        suggestion=f"Did you mean '{near[0]}'?" if near else "`moorage explain` lists the fields.",
    )


def models_in(model: type[BaseModel], path: str = "") -> list[tuple[str, type[BaseModel]]]:
    """A model and all models inside it, each with its path."""
    found = [(path, model)]
    for name, field in model.model_fields.items():
        inner = inner_model(field.annotation)
        if inner is not None:
            found += models_in(inner, f"{path}.{name}".lstrip("."))
    return found


def fields_of(model: type[BaseModel]) -> dict[str, FieldDescription]:
    """The model's own fields by name, without those of nested models."""
    schema = model.model_json_schema()
    return {
        name: FieldDescription(
            kind=_type(schema["properties"][name], schema.get("$defs", {})),
            default=_default(field),
            text=field.description or "",
        )
        for name, field in model.model_fields.items()
    }


def _type(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part, defs) for part in schema["anyOf"]))
    if "$ref" in schema:
        inner = defs[schema["$ref"].rsplit("/", 1)[-1]]
        return " or ".join(f"`{value}`" for value in inner["enum"]) if "enum" in inner else NESTED
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'], defs)}"
    if schema.get("type") == "object":
        values = (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties"))
        named = any(isinstance(value, dict) and "$ref" in value for value in values)
        return f"map by name, {NESTED}" if named else "map of texts"
    return {"null": "nothing", "string": "text", "boolean": "`true` or `false`"}.get(
        schema["type"], _range(schema)
    )


def _range(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{schema['type']}, {low} to {high}"
    return f"{schema['type']}, from {low}" if low is not None else str(schema["type"])


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return REQUIRED
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, ByteSize):
        return f"`{human_bytes(value).replace('.0 ', '')}`"
    if isinstance(value, Enum):
        return f"`{value.value}`"
    parts = value if isinstance(value, tuple) else (value,)
    if any(isinstance(part, BaseModel) for part in parts):
        return NESTED
    if isinstance(value, tuple) and value:
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`" if value not in (None, (), {}, "") else "none"
