"""The ledger as a router: requests for a name go to the release that holds it.

The transaction in which a release takes over is the switch, so there is no second state.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, select

from moorage.adapters.ledger.database import reading
from moorage.adapters.ledger.releases import Releases
from moorage.adapters.ledger.tables import RELEASES, WORKLOADS
from moorage.adapters.ledger.transitions import utc
from moorage.placement.placement import Role
from moorage.releases.release import Release, ReleaseState
from moorage.releases.routing import Route
from moorage.releases.states import SERVING


class Routes:
    """A `Router` over the releases of a ledger."""

    def __init__(self, engine: Engine, releases: Releases) -> None:
        self._engine, self._releases = engine, releases

    def switch(self, release: Release) -> Release:
        """Give the name to a release; in the same transaction its predecessor loses it."""
        return self._releases.take_over(release)

    def close(self, release: str, cause: str) -> None:
        """Take the name from a release."""
        self._releases.move(release, ReleaseState.STOPPING, cause)

    def reopen(self, release: str, cause: str) -> None:
        """Give the name back to a release."""
        self._releases.move(release, ReleaseState.RUNNING, cause)

    def routes(self, model: str = "") -> tuple[Route, ...]:
        """The current routes, by name.

        One query that reads no records, because clients may call this before each request.
        """
        columns = (RELEASES.c.id, RELEASES.c.model, RELEASES.c.state, RELEASES.c.created_at)
        query = (
            select(*columns, RELEASES.c.spec, WORKLOADS.c.workload)
            .outerjoin(WORKLOADS, WORKLOADS.c.release == RELEASES.c.id)
            .where(RELEASES.c.state.in_(SERVING))
            .order_by(RELEASES.c.model, WORKLOADS.c.name)
        )
        if model:
            query = query.where(RELEASES.c.model == model)
        found: dict[str, list[Any]] = {}
        with reading(self._engine) as connection:
            for row in connection.execute(query):
                found.setdefault(row.model, []).append(row)
            return tuple(_route(rows) for rows in found.values())


def _route(rows: list[Any]) -> Route:
    first = rows[0]
    workloads = [row.workload for row in rows if row.workload]
    leaders = [one for one in workloads if one.get("role", Role.LEADER) == Role.LEADER]
    loaded = [{pin["name"] for pin in one.get("adapters", ())} for one in leaders]
    named = {adapter["name"] for adapter in first.spec.get("lora", ())}
    return Route(
        model=first.model,
        release=first.id,
        state=ReleaseState(first.state),
        endpoints=tuple(one["endpoint"] for one in leaders if one["endpoint"]),
        adapters=tuple(sorted(named.union(set.intersection(*loaded) if loaded else ()))),
        since=utc(first.created_at),
    )
