"""The order in which a gateway takes over a new table, so that no route lacks its cluster."""

from __future__ import annotations

from collections.abc import Iterable
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
        before: The table in force, and one whose transition was interrupted.
        after: The new table.
    """
    version = str(after.version)
    found = (
        (CLUSTERS_FILE, f"{version}-all", clusters((*before, after))),
        (ROUTES_FILE, version, route_table(after)),
        (CLUSTERS_FILE, version, clusters([after])),
    )
    return tuple(Step(file, name, discovery(name, document)) for file, name, document in found)
