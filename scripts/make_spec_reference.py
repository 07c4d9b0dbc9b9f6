"""Writes the reference of spec, fleet file and policy from the models' own descriptions."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from moorage.common.failures import Cause
from moorage.common.units import human_bytes
from moorage.engines.packages import PACKAGES
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.policy.rules import Policy
from moorage.spec import Mode, ModelSpec

HEAD = """# Reference: what users write

Made by `make docs` from `moorage/spec/`, `moorage/inventory/fleet.py`, `moorage/policy/` and
`moorage/engines/`.
Do not edit by hand.

Sizes are whole bytes, or texts such as `16GiB` or `1.5 MB`: a number and one of the units `B`,
`kB`, `KB`, `MB`, `GB`, `TB`, `PB`, `KiB`, `MiB`, `GiB`, `TiB`, `PiB`; 1 PiB at most. Unknown keys
are refused.

A file is YAML 1.2 in UTF-8, one document in a plain file: at most 256 KiB, 20,000 keys and values
(aliases and merge keys followed), 500 aliases, 32 levels, and no tags but those of YAML's own plain
types. Numbers are finite and at most 2^63 - 1. Texts hold no control characters and nothing that
overrides the direction of writing. Line feeds and tabs are allowed in prompts, `expect`,
`engine.args`, `command`, `entrypoint`, `env`, in `application` and in the fleet's `run_command` and
`entrypoint`. A text has at most 100,000 characters, one of `engine.args` 32,768.
"""


PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("Model spec", ModelSpec),
    ("Fleet file", Fleet),
    ("Policy file", Policy),
)


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, model in PARTS:
        parts.append(f"## {title}\n")
        for path, part in _models(model, ""):
            parts.append(_section(path, part))
    parts += [_engines(), _failures()]
    return "\n".join(parts)


def _engines() -> str:
    """What each engine serves, loads and runs on."""
    lines = [
        "## Engines\n",
        "| `engine.name` | modes | loads | accelerators | over several hosts | as packages |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, engine in ENGINES.items():
        modes = [mode.value for mode in Mode if mode in engine.modes]
        modes += [f"{mode} with `engine.image`" for mode in sorted(engine.modes_of_own_images)]
        kinds = [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu]
        loads = sorted(engine.formats) if engine.predictable else ["anything"]
        spans, packed = engine.spans_hosts, name in PACKAGES
        cells = (", ".join(modes), ", ".join(loads), ", ".join(kinds), *map(_yes, (spans, packed)))
        lines.append(_row((f"`{name}`", *cells)))
    return "\n".join(lines) + "\n"


def _yes(true: bool) -> str:
    return "yes" if true else "-"


def _models(model: type[BaseModel], path: str) -> list[tuple[str, type[BaseModel]]]:
    """A model and all models inside it, each with the path at which it stands."""
    found = [(path, model)]
    for name, field in model.model_fields.items():
        inner = _inner(field.annotation)
        if inner is not None:
            found += _models(inner, f"{path}.{name}".lstrip("."))
    return found


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    parts = getattr(annotation, "__args__", ())
    return next((inner for part in parts if (inner := _inner(part))), None)


def _section(path: str, model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    lines = [f"### `{path or '(top level)'}`\n", f"{(model.__doc__ or '').strip()}\n"]
    lines += ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in model.model_fields.items():
        kind = _type(schema["properties"][name], schema.get("$defs", {}))
        lines.append(_row((f"`{name}`", kind, _default(field), field.description or "")))
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _type(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part, defs) for part in schema["anyOf"]))
    if "$ref" in schema:
        inner = defs[schema["$ref"].rsplit("/", 1)[-1]]
        return (
            " or ".join(f"`{value}`" for value in inner["enum"]) if "enum" in inner else "see below"
        )
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'], defs)}"
    if schema.get("type") == "object":
        values = (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties"))
        named = any(isinstance(value, dict) and "$ref" in value for value in values)
        return "map by name, see below" if named else "map of texts"
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
        return "required"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, ByteSize):
        return f"`{human_bytes(value).replace('.0 ', '')}`"
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, BaseModel) or (isinstance(value, tuple) and value):
        return "see below"
    return f"`{value}`" if value not in (None, (), {}, "") else "none"


def _failures() -> str:
    lines = [
        "## Failures and exit codes\n",
        "| cause | exit code | tried again | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for cause in Cause:
        again = "yes" if cause.retryable else "no"
        lines.append(f"| `{cause}` | {int(cause.exit_code)} | {again} | {cause.summary} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
