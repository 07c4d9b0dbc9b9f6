"""The Lua scripts that Envoy runs on each request, with the models and callers that they look up.

Models and callers are tables inside the scripts, in the route configuration. Envoy would copy
metadata for each request: with 1,000 keys, that costs 1.4 ms a request.
"""

from collections.abc import Mapping
from typing import Any

from moorage.engines.registry import ENGINES
from moorage.gateway.table import ApiKey, RoutingTable

AUTHENTICATE, CHOOSE_MODEL, COUNT_TOKENS = "authenticate", "choose_model", "count_tokens"
PREFIX_KEY = "prefix_key"
"""Script for the routes of prefix-aware models only."""

PATHS = sorted({path for engine in ENGINES.values() for path in engine.model_paths})
"""Engines' paths outside `/v1` whose requests name the model."""

COMMON = (AUTHENTICATE, CHOOSE_MODEL, COUNT_TOKENS)
SCRIPTS = (*COMMON, PREFIX_KEY)


def scripts(table: RoutingTable, code: Mapping[str, str]) -> dict[str, str]:
    """Code of the scripts for all routes, by name, each preceded by its lookup tables."""
    models = {name: model.name for model in table.models for name in model.names}
    callers = {
        "REQUIRES_KEY": table.requires_key,
        "KEYS": {key.digest: _caller(key, table) for key in table.keys},
    }
    tables: dict[str, dict[str, Any]] = {
        AUTHENTICATE: callers,
        CHOOSE_MODEL: {"MODELS": models, "PATHS": dict.fromkeys(PATHS, True)},
    }
    return {name: f"{_locals(tables.get(name, {}))}{code[name]}" for name in COMMON}


def literal(value: Any) -> str:
    """A value as a Lua literal; characters of a text are escaped, so it cannot end the literal."""
    if isinstance(value, Mapping):
        entries = (f"[{literal(key)}]={literal(entry)}" for key, entry in value.items())
        return f"{{{','.join(entries)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    escaped = "".join(_escaped(byte) for byte in str(value).encode())
    return f'"{escaped}"'


def _caller(key: ApiKey, table: RoutingTable) -> dict[str, Any]:
    back = table.day_ends if key.name in table.spent else None
    return {
        "name": key.name,
        **({"models": dict.fromkeys(key.models, True)} if key.models else {}),
        **({"expires": key.expires.timestamp()} if key.expires else {}),
        **({"spent_until": back.timestamp()} if back else {}),
    }


def _locals(tables: Mapping[str, Any]) -> str:
    return "".join(f"local {name} = {literal(value)}\n" for name, value in tables.items())


def _escaped(byte: int) -> str:
    """A byte inside a literal: ASCII letters and digits unchanged, others by number."""
    return chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03d}"
