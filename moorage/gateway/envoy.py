"""Envoy's configuration: where it listens, and the filters that each request passes."""

from typing import Any

from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.scripts import AUTHENTICATE, CHOOSE_MODEL, COUNT_TOKENS, PREFIX_KEY
from moorage.gateway.usage import USAGE

Document = dict[str, Any]

TYPE = "type.googleapis.com/envoy"
METADATA = "moorage"
"""Namespace of the metadata that filters set on a request: caller, tokens."""

MODEL = ("envoy.lb", "model")
"""Namespace and key of the model that a request names."""

ROUTES = "models"
OWN_FOLDER = "envoy"
"""Subfolder into which Envoy writes; in a container, Envoy can write nowhere else."""

ADMIN_SOCKET, ACCESS_LOG = f"{OWN_FOLDER}/admin", f"{OWN_FOLDER}/access.log"
OLD_ACCESS_LOG = f"{OWN_FOLDER}/access.1"
CONFIG_FOLDER = "config"
LISTENERS_FILE, ROUTES_FILE, CLUSTERS_FILE = "listeners.json", "routes.json", "clusters.json"

RATE_LIMIT = "envoy.filters.http.local_ratelimit"
"""Filter that limits callers; their rates come with the routes."""

OVERLOADED = 10_000
"""Most client connections at a time."""

HEADERS_SECONDS = 30
"""Limit from the first byte of a request to the end of its headers."""

UNUSED_SECONDS = 300
"""How long a connection without requests stays open."""

LONGEST_LOGGED = 256
"""Most bytes of a caller's text in a line of the access log."""

JSON_TYPE = r"(?i)application/([^;]+\+)?json\s*(;.*)?"
"""Content types whose body names the model; many clients add a character set."""


def bootstrap(folder: str) -> Document:
    """Configuration that Envoy starts with; it reads the rest from files that can be replaced."""
    return {
        "node": {"id": "moorage", "cluster": "moorage"},
        "admin": {"address": {"pipe": {"path": f"{folder}/{ADMIN_SOCKET}", "mode": 0o600}}},
        "dynamic_resources": {
            "lds_config": source(folder, LISTENERS_FILE),
            "cds_config": source(folder, CLUSTERS_FILE),
        },
        "overload_manager": {
            "resource_monitors": [
                named(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    "extensions.resource_monitors.downstream_connections.v3"
                    ".DownstreamConnectionsConfig",
                    max_active_downstream_connections=OVERLOADED,
                )
            ]
        },
    }


def listeners(
    options: GatewayOptions, folder: str, pem: tuple[str, str] | None = None
) -> list[Document]:
    """The gateway's only listener.

    Args:
        folder: The gateway's folder, as Envoy sees it.
        pem: Certificate chain and private key of an encrypted one.
    """
    address = {"address": options.bind, "port_value": options.port}
    chain: Document = {"filters": [_connection_manager(options, folder)]}
    if options.is_encrypted:
        assert pem, "without its certificate it would answer in plain HTTP"
        chain["transport_socket"] = _tls(pem)
    return [
        {
            "@type": f"{TYPE}.config.listener.v3.Listener",
            "name": "gateway",
            "address": {"socket_address": address},
            "per_connection_buffer_limit_bytes": options.max_body_bytes,
            "filter_chains": [chain],
        }
    ]


def discovery(version: str, resources: list[Document]) -> Document:
    """Content of a file that Envoy reads again whenever it is replaced."""
    return {"version_info": version, "resources": resources}


def named(name: str, kind: str, **config: Any) -> Document:
    """An Envoy extension with its configuration."""
    return {"name": name, "typed_config": {"@type": f"{TYPE}.{kind}", **config}}


def lua_filter(script: str) -> str:
    """Name of the filter that runs a script."""
    return f"moorage.{script}"


def source(folder: str, file: str) -> Document:
    """A configuration file as a source of resources."""
    path = f"{folder}/{CONFIG_FOLDER}"
    return {
        "path_config_source": {"path": f"{path}/{file}", "watched_directory": {"path": path}},
        "resource_api_version": "V3",
    }


def _connection_manager(options: GatewayOptions, folder: str) -> Document:
    return named(
        "envoy.filters.network.http_connection_manager",
        "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="gateway",
        stream_idle_timeout=f"{options.idle_seconds}s",
        request_timeout="0s",
        # A client that never completes its headers holds a connection without having shown a key.
        request_headers_timeout=f"{HEADERS_SECONDS}s",
        common_http_protocol_options={"idle_timeout": f"{UNUSED_SECONDS}s"},
        use_remote_address=True,
        # Engines normalize paths like this, so routes must match the same form.
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="UNESCAPE_AND_FORWARD",
        rds={"route_config_name": ROUTES, "config_source": source(folder, ROUTES_FILE)},
        http_filters=_filters(),
        access_log=[_access_log(folder)],
        local_reply_config=_local_replies(),
    )


def _tls(pem: tuple[str, str]) -> Document:
    chain, key = pem
    certificate = {
        "certificate_chain": {"inline_string": chain},
        "private_key": {"inline_string": key},
    }
    common = {"tls_certificates": [certificate], "alpn_protocols": ["h2", "http/1.1"]}
    context = "extensions.transport_sockets.tls.v3.DownstreamTlsContext"
    return named("envoy.transport_sockets.tls", context, common_tls_context=common)


def _filters() -> list[Document]:
    return [
        _lua(AUTHENTICATE),
        named(
            RATE_LIMIT,
            "extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
            stat_prefix="callers",
        ),
        named(
            "envoy.filters.http.json_to_metadata",
            "extensions.filters.http.json_to_metadata.v3.JsonToMetadata",
            request_rules={
                "rules": [_model_rule()],
                "allow_content_types_regex": {"regex": JSON_TYPE},
            },
        ),
        _lua(CHOOSE_MODEL),
        _lua(PREFIX_KEY),
        _lua(COUNT_TOKENS),
        named("envoy.filters.http.router", "extensions.filters.http.router.v3.Router"),
    ]


def _model_rule() -> Document:
    """Copy the field `model` of the body to the metadata; empty if it is missing."""
    namespace, key = MODEL
    target = {"metadata_namespace": namespace, "key": key}
    absent = {**target, "value": ""}
    return {
        "selectors": [{"key": "model"}],
        "on_present": target,
        "on_missing": absent,
        "on_error": absent,
    }


def _lua(script: str) -> Document:
    """A Lua filter, whose script comes with the routes."""
    return named(lua_filter(script), "extensions.filters.http.lua.v3.Lua")


def _access_log(folder: str) -> Document:
    """One JSON object for each request, without its text."""
    namespace, key = MODEL
    return named(
        "envoy.access_loggers.file",
        "extensions.access_loggers.file.v3.FileAccessLog",
        path=f"{folder}/{ACCESS_LOG}",
        log_format={
            "json_format": {
                "at": "%START_TIME(%Y-%m-%dT%H:%M:%E3SZ)%",
                "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
                "caller": f"%DYNAMIC_METADATA({METADATA}:caller)%",
                "method": f"%REQ(:METHOD):{LONGEST_LOGGED}%",
                "path": f"%PATH(NQ):{LONGEST_LOGGED}%",
                "model": f"%DYNAMIC_METADATA({namespace}:{key}):{LONGEST_LOGGED}%",
                "release": "%UPSTREAM_CLUSTER_RAW%",
                "endpoint": "%UPSTREAM_HOST%",
                "status": "%RESPONSE_CODE%",
                "attempts": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
                "flags": "%RESPONSE_FLAGS%",
                "first_byte_ms": "%RESPONSE_DURATION%",
                "total_ms": "%DURATION%",
                **{name: f"%DYNAMIC_METADATA({METADATA}:{name})%" for name in USAGE},
            }
        },
    )


def _local_replies() -> Document:
    """Envoy's own errors in OpenAI's format; answers of filters and routes stay unchanged."""
    failed = {"response_flag_filter": {"flags": ["UH", "UF", "UT", "UC", "UO", "LR", "NC", "URX"]}}
    limited = {"and_filter": {"filters": [_with_status(429), NOT_SPENT]}}
    body = {
        "error": {
            "message": "%LOCAL_REPLY_BODY%",
            "type": "server_error",
            "param": None,
            "code": "%RESPONSE_CODE_DETAILS%",
        }
    }
    return {
        "mappers": [
            {"filter": one, "body_format_override": {"json_format": body}}
            for one in (failed, limited, _with_status(413))
        ]
    }


NOT_SPENT = {
    "metadata_filter": {
        "matcher": {
            "filter": METADATA,
            "path": [{"key": "spent"}],
            "value": {"bool_match": False},
        },
        "match_if_key_not_found": True,
    }
}
"""Excludes the refusals of the script `authenticate`, which are already in OpenAI's format."""


def _with_status(status: int) -> Document:
    value = {"default_value": status, "runtime_key": "none"}
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}
