"""Routing tables for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

from moorage.gateway.table import ApiKey, Backend, ModelRoute, RoutingTable

SINCE = datetime(2026, 11, 1, 12, tzinfo=UTC)


def model(name: str, *backends: Backend, **fields: object) -> ModelRoute:
    return ModelRoute.model_validate({"name": name, "backends": backends, "since": SINCE, **fields})


def backend(release: str, *ports: int, weight: int = 100, key_file: str = "") -> Backend:
    endpoints = tuple(f"http://127.0.0.1:{port}" for port in ports)
    return Backend(release=release, endpoints=endpoints, weight=weight, key_file=key_file)


def key(name: str, text: str, **fields: object) -> ApiKey:
    digest = sha256(text.encode()).hexdigest()
    return ApiKey.model_validate({"name": name, "digest": digest, "created_at": SINCE, **fields})


def table(*models: ModelRoute, **fields: object) -> RoutingTable:
    return RoutingTable.model_validate({"models": models, **fields})
