"""The order in which a gateway takes over a new table, so that no route lacks its cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from moorage.gateway.envoy import CLUSTERS_FILE, ROUTES_FILE, Document, discovery
from moorage.gateway.routes import clusters, route_table
from moorage.gateway.table import RoutingTable


class Step(NamedTuple):
    """A file that is renamed into place; the next step waits until Envoy has taken it."""

    file: str
    version: str
    document: Document


def steps(before: Iterable[RoutingTable], after: RoutingTable) -> tuple[Step, ...]:
    """Clusters of all tables, then the new routes, then only the new clusters.

    In between, each request meets a route whose cluster is there: it goes to the old release or
    to the new one, and never to nothing.

    Args:
        before: The table in force, and those whose transition was interrupted.
        after: The new table.
    """
    return (
        _step(CLUSTERS_FILE, clusters((*before, after))),
        _step(ROUTES_FILE, route_table(after)),
        _step(CLUSTERS_FILE, clusters([after])),
    )


def _step(file: str, resources: list[Document]) -> Step:
    """A file whose version says what is in it, so the same content is the same version."""
    version = sha256(json.dumps(resources).encode()).hexdigest()[:16]
    return Step(file, version, discovery(version, resources))
