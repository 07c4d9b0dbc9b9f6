"""The order in which a gateway takes over a new table, so that no route lacks its cluster."""

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
    """A file that is renamed into place; the next step waits until Envoy has taken it."""

    file: str
    version: str
    document: Document


def steps(
    before: Iterable[RoutingTable], after: RoutingTable, code: Mapping[str, str]
) -> tuple[Step, ...]:
    """Clusters of all tables, then the new routes.

    So each request meets a route whose cluster is there: it goes to the old release or to the new
    one, and never to nothing.

    Args:
        before: Earlier tables whose clusters stay.
        after: The new table.
        code: The Lua scripts of this package, by name.
    """
    return clusters_step((*before, after)), _step(ROUTES_FILE, route_table(after, code))


def clusters_step(tables: Iterable[RoutingTable]) -> Step:
    """The clusters of some tables, and no others."""
    return _step(CLUSTERS_FILE, clusters(tables))


def listener_step(options: GatewayOptions, folder: str, pem: tuple[str, str] | None = None) -> Step:
    """How a gateway with a folder listens; arguments as those of `listeners`."""
    return _step(LISTENERS_FILE, listeners(options, folder, pem))


def _step(file: str, resources: list[Document]) -> Step:
    """A file whose version says what is in it, so the same content is the same version."""
    version = sha256(json.dumps(resources).encode()).hexdigest()[:16]
    return Step(file, version, discovery(version, resources))
