"""Envoy's routes and clusters: which release answers for a model, at each moment."""

import json
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from moorage.gateway.envoy import (
    MODEL,
    RATE_LIMIT,
    ROUTES,
    TYPE,
    Document,
    discovery,
    lua_filter,
    named,
)
from moorage.gateway.rates import rate_limits
from moorage.gateway.scripts import scripts
from moorage.gateway.table import Backend, ModelRoute, RoutingTable

DOORMAN = "doorman"
"""Cluster of the service that wakes models."""

DOORMAN_RETRIES = {
    "retry_on": "connect-failure,reset",
    "num_retries": 20,
    "retry_back_off": {"base_interval": "0.2s", "max_interval": "2s"},
}
"""It holds callers anyway, so a restart of it costs them no more than time."""

MODEL_HEADER = "x-moorage-model"
"""Tells the doorman the model, whatever name the caller used."""

CONNECT_SECONDS = 2
RETRIES = 3
LARGEST_LISTING = 4 * 2**20
"""Bytes of `/v1/models`; Envoy takes 4 KiB unless told."""

RETRY_ON = "connect-failure,refused-stream,reset,retriable-status-codes"
"""All before the first byte of an answer: then another replica may be asked."""


def route_table(table: RoutingTable, code: Mapping[str, str]) -> list[Document]:
    """The route configuration: listing, one route a model, and a refusal for what is left.

    Args:
        table: Models and callers.
        code: The Lua scripts of this package, by name.
    """
    routes = [
        _reply({"path": "/health"}, 200, {"status": "ok"}),
        _reply({"path": "/ready"}, 200, {"status": "ready"}),
        *_listing(table.models),
    ]
    for model in table.models:
        routes += [_route(model, name, table.doorman) for name in model.names]
    unknown = _error("There is nothing at this path.", "unknown_path")
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


def clusters(tables: Iterable[RoutingTable]) -> list[Document]:
    """A cluster for each release that one of these tables sends requests to."""
    found: dict[str, Document] = {}
    for table in tables:
        if table.doorman:
            found[DOORMAN] = _cluster(DOORMAN, [{"pipe": {"path": table.doorman}}])
        for backend in (backend for model in table.models for backend in model.backends):
            found[backend.release] = _engines(backend)
    return [found[name] for name in sorted(found)]


def _for_filters(table: RoutingTable, code: Mapping[str, str]) -> Document:
    """What filters need to know of models and callers."""
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
        "state": _state(model),
    }
    yield {"id": model.name, **common}
    yield from ({"id": name, **common, "parent": model.name} for name in model.adapters)


def _state(model: ModelRoute) -> str:
    if model.backends:
        return "running"
    return "asleep" if model.asleep else "unavailable"


def _route(model: ModelRoute, name: str, doorman: str) -> Document:
    namespace, key = MODEL
    match = {
        "safe_regex": {"regex": r"(/models/[^/]+)?/v1/.*"},
        "dynamic_metadata": [
            {
                "filter": namespace,
                "path": [{"key": key}],
                "value": {"string_match": {"exact": name}},
            }
        ],
    }
    rewrite = {
        "pattern": {"regex": r"^(/models/[^/]+)?/v1/"},
        "substitution": f"{_prefix(model)}/v1/",
    }
    action: Document = {
        "timeout": f"{model.timeout_seconds}s",
        "regex_rewrite": rewrite,
        "retry_policy": _retries(),
    }
    if model.backends:
        action["weighted_clusters"] = {"clusters": [_weighted(one) for one in model.backends]}
    elif model.asleep and doorman:
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


def _prefix(model: ModelRoute) -> str:
    """The path in front of `/v1` at its engines: applications of one Ray cluster share a port."""
    endpoints = [url for backend in model.backends for url in backend.endpoints]
    return urlsplit(endpoints[0]).path.rstrip("/") if endpoints else ""


def _weighted(backend: Backend) -> Document:
    return {"name": backend.release, "weight": backend.weight}


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
        "host_selection_retry_max_attempts": str(RETRIES),
    }


def _engines(backend: Backend) -> Document:
    addresses = [{"socket_address": _address(url)} for url in backend.endpoints]
    return {
        **_cluster(backend.release, addresses),
        "type": _discovery_type(backend.endpoints),
        "outlier_detection": {
            "split_external_local_origin_errors": True,
            "consecutive_local_origin_failure": 1,
            "base_ejection_time": "2s",
            "max_ejection_time": "30s",
            "max_ejection_percent": 100,
        },
        **(_with_key(backend.key_file) if backend.key_file else {}),
    }


def _cluster(name: str, addresses: list[Document]) -> Document:
    hosts = [{"endpoint": {"address": address}} for address in addresses]
    return {
        "@type": f"{TYPE}.config.cluster.v3.Cluster",
        "name": name,
        "type": "STATIC",
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "lb_policy": "LEAST_REQUEST",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
        "circuit_breakers": {"thresholds": [UNBOUNDED]},
    }


def _discovery_type(endpoints: tuple[str, ...]) -> str:
    """Addresses are taken as they are; a name of any host is resolved, again and again."""
    for url in endpoints:
        try:
            ip_address(urlsplit(url).hostname or "")
        except ValueError:
            return "STRICT_DNS"
    return "STATIC"


def _with_key(file: str) -> Document:
    """Send the engine its own API key, which only the gateway knows, instead of the caller's."""
    secret = {"name": ENGINE_KEY, "sds_config": {"path_config_source": {"path": file}}}
    injected = named(
        "envoy.http.injected_credentials.generic",
        "extensions.http.injected_credentials.generic.v3.Generic",
        credential=secret,
    )
    injector = named(
        "envoy.filters.http.credential_injector",
        "extensions.filters.http.credential_injector.v3.CredentialInjector",
        overwrite=True,
        credential=injected,
    )
    codec = named(
        "envoy.filters.http.upstream_codec",
        "extensions.filters.http.upstream_codec.v3.UpstreamCodec",
    )
    name = "extensions.upstreams.http.v3.HttpProtocolOptions"
    options = {
        "@type": f"{TYPE}.{name}",
        "explicit_http_config": {"http_protocol_options": {}},
        "http_filters": [injector, codec],
    }
    return {"typed_extension_protocol_options": {f"envoy.{name}": options}}


def engine_key(key: str) -> Document:
    """The secret that `Backend.key_file` holds, as Envoy reads it."""
    kind = f"{TYPE}.extensions.transport_sockets.tls.v3.Secret"
    secret = {"secret": {"inline_string": f"Bearer {key}"}}
    return discovery("1", [{"@type": kind, "name": ENGINE_KEY, "generic_secret": secret}])


ENGINE_KEY = "engine-key"
"""Name of the secret in its file."""

UNBOUNDED = {
    "max_connections": 100_000,
    "max_pending_requests": 100_000,
    "max_requests": 100_000,
    "max_retries": 1_000,
}
"""An engine queues requests itself, so the gateway holds none back."""


def _address(url: str) -> Document:
    parts = urlsplit(url)
    return {"address": parts.hostname, "port_value": parts.port}


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
