"""Envoy's routes: the clusters that answer for each model."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.engines.registry import ENGINES
from moorage.gateway.clusters import DOORMAN
from moorage.gateway.envoy import MODEL, RATE_LIMIT, ROUTES, TYPE, Document, lua_filter, named
from moorage.gateway.rates import rate_limits
from moorage.gateway.scripts import PATHS, PREFIX_KEY, scripts
from moorage.gateway.table import ModelRoute, RoutingTable

DOORMAN_RETRIES = {
    "retry_on": "connect-failure,reset",
    "num_retries": 20,
    "retry_back_off": {"base_interval": "0.2s", "max_interval": "2s"},
}
"""Retries for the doorman: it holds callers anyway, so its restart only costs them time."""

MODEL_HEADER = "x-moorage-model"
"""Header that tells the doorman the model, whichever of its names the caller used."""

PREFIX_HEADER = "x-moorage-prefix"
"""Header with the key of the prompt's beginning, set by the script `prefix_key`."""

RETRIES = 3
HOST_CHOICES = 20
"""How often a retry chooses again before it goes to a replica that has failed the request before.
A dead replica has nothing in flight, so `least-request` prefers it until it is ejected: with 3
choices between two replicas, 2 % of the requests failed while none was ejected."""

LARGEST_LISTING = 4 * 2**20
"""Most bytes of the answer to `/v1/models`; Envoy's default is 4 KiB."""

RETRY_ON = "connect-failure,refused-stream,reset,retriable-status-codes"
"""Failures before the first byte of an answer, so that another replica can still answer."""


def route_table(table: RoutingTable, code: Mapping[str, str]) -> list[Document]:
    """Route configuration: the listing, one route for each name, and a refusal for other paths.

    `code` has the Lua scripts of this package by name.
    """
    unknown = _error("There is nothing at this path.", "unknown_path")
    routes = [
        _reply({"path": "/health"}, 200, {"status": "ok"}),
        _reply({"path": "/ready"}, 200, {"status": "ready"}),
        _reply(_updates(), 404, unknown),
        *_listing(table.models),
    ]
    for model in table.models:
        own = _own_filters(model, code)
        routes += [_route(model, name, table.doorman) | own for name in model.names]
    return [
        {
            "@type": f"{TYPE}.config.route.v3.RouteConfiguration",
            "name": ROUTES,
            "max_direct_response_body_size_bytes": LARGEST_LISTING,
            "virtual_hosts": [
                {
                    "name": ROUTES,
                    "domains": ["*"],
                    "routes": [*routes, _reply({"prefix": "/"}, 404, unknown)],
                    "typed_per_filter_config": _for_filters(table, code),
                }
            ],
        }
    ]


def _updates() -> Document:
    """Paths to load and unload adapters at engines: for moorage itself, refused to callers."""
    updates = [engine.updates for engine in ENGINES.values() if engine.updates]
    paths = sorted({path for one in updates for path in (one.load, one.unload)})
    return {"safe_regex": {"regex": f"(/models/[^/]+)?({'|'.join(paths)})/?"}}


def _for_filters(table: RoutingTable, code: Mapping[str, str]) -> Document:
    """Configuration of the filters for all routes, with the models and callers."""
    rates = {key.name: key.rate for key in table.keys if key.rate}
    found = {lua_filter(name): _lua(text) for name, text in scripts(table, code).items()}
    return {RATE_LIMIT: rate_limits(rates), **found}


def _lua(code: str) -> Document:
    kind = f"{TYPE}.extensions.filters.http.lua.v3.LuaPerRoute"
    return {"@type": kind, "source_code": {"inline_string": code}}


def _listing(models: Iterable[ModelRoute]) -> Iterator[Document]:
    entries = [entry for model in models for entry in _entries(model)]
    yield _reply({"path": "/v1/models"}, 200, {"object": "list", "data": entries})
    for entry in entries:
        yield _reply({"path": f"/v1/models/{entry['id']}"}, 200, entry)


def _entries(model: ModelRoute) -> Iterator[dict[str, Any]]:
    common = {
        "object": "model",
        "created": int(model.since.timestamp()),
        "owned_by": "moorage",
        "state": "running" if model.backends else model.held or "unavailable",
    }
    yield {"id": model.name, **common}
    yield from ({"id": name, **common, "parent": model.name} for name in model.adapters)


def _route(model: ModelRoute, name: str, doorman: str) -> Document:
    namespace, key = MODEL
    match = {
        "safe_regex": {"regex": f"(/models/[^/]+)?(/v1/.*|{'|'.join(PATHS)})"},
        "dynamic_metadata": [
            {
                "filter": namespace,
                "path": [{"key": key}],
                "value": {"string_match": {"exact": name}},
            }
        ],
    }
    rewrite = {
        "pattern": {"regex": r"^(/models/[^/]+)?/"},
        "substitution": f"{_prefix(model)}/",
    }
    action: Document = {
        "timeout": f"{model.timeout_seconds}s",
        "regex_rewrite": rewrite,
        "retry_policy": _retries(),
    }
    if serving := [one for one in model.backends if name not in one.missing]:
        weighted = [{"name": one.cluster, "weight": one.weight} for one in serving]
        action["weighted_clusters"] = {"clusters": weighted}
        if _is_prefix_aware(model):
            action["hash_policy"] = [{"header": {"header_name": PREFIX_HEADER}}]
    elif model.held and doorman and not model.problem:
        action |= {"cluster": DOORMAN, "retry_policy": DOORMAN_RETRIES}
        return {
            "match": match,
            "route": action,
            "request_headers_to_add": [_header(MODEL_HEADER, model.name)],
        }
    else:
        why = f": {model.problem}" if model.problem else "."
        refusal = _error(f"Nobody serves '{model.name}' now{why}", "model_unavailable")
        return _reply(match, 503, refusal)
    return {"match": match, "route": action}


def _own_filters(model: ModelRoute, code: Mapping[str, str]) -> Document:
    """Additional filter configuration of a model's routes."""
    if not _is_prefix_aware(model):
        return {}
    return {"typed_per_filter_config": {lua_filter(PREFIX_KEY): _lua(code[PREFIX_KEY])}}


def _is_prefix_aware(model: ModelRoute) -> bool:
    return any(backend.is_prefix_aware for backend in model.backends)


def _prefix(model: ModelRoute) -> str:
    """Path before `/v1` at the model's engines: applications of a Ray cluster share a port."""
    endpoints = [url for backend in model.backends for url in backend.endpoints]
    return urlsplit(endpoints[0]).path.rstrip("/") if endpoints else ""


def _retries() -> Document:
    return {
        "retry_on": RETRY_ON,
        "retriable_status_codes": [503],
        "num_retries": RETRIES,
        "retry_host_predicate": [
            named(
                "envoy.retry_host_predicates.previous_hosts",
                "extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
            )
        ],
        "host_selection_retry_max_attempts": str(HOST_CHOICES),
    }


def _reply(match: Document, status: int, body: Any) -> Document:
    return {
        "match": match,
        "direct_response": {"status": status, "body": {"inline_string": json.dumps(body)}},
        "response_headers_to_add": [_header("content-type", "application/json")],
    }


def _header(name: str, value: str) -> Document:
    header = {"key": name, "value": value}
    return {"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _error(message: str, code: str) -> Document:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    }
