"""The order of the files for a new table, so that no route lacks its cluster."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from moorage.gateway.clusters import clusters
from moorage.gateway.envoy import (
    CLUSTERS_FILE,
    LISTENERS_FILE,
    ROUTES_FILE,
    Document,
    discovery,
    listeners,
)
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.routes import route_table
from moorage.gateway.table import RoutingTable


class Step(NamedTuple):
    """A file to replace; the next step waits until Envoy has loaded it."""

    file: str
    version: str
    document: Document


def steps(
    before: Iterable[RoutingTable], after: RoutingTable, code: Mapping[str, str]
) -> tuple[Step, ...]:
    """Steps to a new table: first the clusters of all tables, then the new routes.

    Thus each route has its cluster at any time: a request goes to the old or to the new release.
    The clusters of the tables `before` stay.
    """
    return clusters_step((*before, after)), _step(ROUTES_FILE, route_table(after, code))


def clusters_step(tables: Iterable[RoutingTable]) -> Step:
    """Step to the clusters of these tables, without any others."""
    return _step(CLUSTERS_FILE, clusters(tables))


def listener_step(options: GatewayOptions, folder: str, pem: tuple[str, str] | None = None) -> Step:
    """Step to a listener; arguments as in `listeners`."""
    return _step(LISTENERS_FILE, listeners(options, folder, pem))


def _step(file: str, resources: list[Document]) -> Step:
    """A step whose version is a hash of its content: the same content has the same version."""
    version = sha256(json.dumps(resources).encode()).hexdigest()[:16]
    return Step(file, version, discovery(version, resources))
