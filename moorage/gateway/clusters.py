"""Envoy's clusters: the engines of each release."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from moorage.gateway.envoy import TYPE, Document, discovery, named
from moorage.gateway.table import Backend, RoutingTable

DOORMAN = "doorman"
"""Cluster of the service that wakes models."""

BALANCE = 125
"""Limit on a cached replica's requests in flight, in per cent of the average of all replicas."""

CONNECT_SECONDS = 2

ENGINE_KEY = "engine-key"
"""Name of the engine's secret in its file."""

UNBOUNDED = {
    "max_connections": 100_000,
    "max_pending_requests": 100_000,
    "max_requests": 100_000,
    "max_retries": 1_000,
}
"""Engines queue requests themselves, so the gateway holds none back."""


_PREFIX_AWARE: Document = {
    "lb_policy": "MAGLEV",
    "common_lb_config": {"consistent_hashing_lb_config": {"hash_balance_factor": BALANCE}},
}
"""Equal keys go to the same replica; keys of an unavailable replica spread over the others."""


def clusters(tables: Iterable[RoutingTable]) -> list[Document]:
    """A cluster for each release to which one of the tables sends requests."""
    found: dict[str, Document] = {}
    for table in tables:
        if table.doorman:
            found[DOORMAN] = _cluster(DOORMAN, [{"pipe": {"path": table.doorman}}])
        for backend in (backend for model in table.models for backend in model.backends):
            found[backend.release] = _engines(backend)
            if backend.stand_in:
                found[backend.cluster] = _either(backend)
    return [found[name] for name in sorted(found)]


def engine_key(key: str) -> Document:
    """Content of `Backend.key_file`: the engine's key as Envoy reads it."""
    kind = f"{TYPE}.extensions.transport_sockets.tls.v3.Secret"
    secret = {"secret": {"inline_string": f"Bearer {key}"}}
    return discovery("1", [{"@type": kind, "name": ENGINE_KEY, "generic_secret": secret}])


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
        **(_PREFIX_AWARE if backend.is_prefix_aware else {}),
        **_key(backend),
    }


def _either(backend: Backend) -> Document:
    """A cluster of a release with its fallback, for when none of the release's engines answers."""
    members = [backend.release, backend.stand_in]
    kind = "extensions.clusters.aggregate.v3.ClusterConfig"
    return {
        "@type": f"{TYPE}.config.cluster.v3.Cluster",
        "name": backend.cluster,
        "connect_timeout": f"{CONNECT_SECONDS}s",
        "lb_policy": "CLUSTER_PROVIDED",
        "cluster_type": named("envoy.clusters.aggregate", kind, clusters=members),
        **_key(backend),
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
    """`STATIC` if all endpoints are IP addresses; else Envoy keeps resolving the host names."""
    for url in endpoints:
        try:
            ip_address(urlsplit(url).hostname or "")
        except ValueError:
            return "STRICT_DNS"
    return "STATIC"


def _key(backend: Backend) -> Document:
    """Options that replace the caller's API key by the engine's own, known only to the gateway."""
    if not (file := backend.key_file):
        return {}
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


def _address(url: str) -> Document:
    parts = urlsplit(url)
    return {"address": parts.hostname, "port_value": parts.port}
