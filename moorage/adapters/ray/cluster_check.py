"""Checking the Ray clusters of a fleet: the dashboard, and the address where Serve answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from moorage.adapters.engines.engine_http import (
    Late,
    Question,
    Unreachable,
    Unusable,
    ask_engine_now,
)
from moorage.adapters.ray.cluster_survey import survey_cluster
from moorage.adapters.system.parallel import all_at_once
from moorage.common.failures import Failure
from moorage.common.units import counted
from moorage.inventory.check import Check, HostChecks, broken, fine
from moorage.inventory.cluster_snapshot import ClusterSnapshot
from moorage.inventory.clusters import RayCluster
from moorage.inventory.fleet import Fleet

CLUSTER_SECONDS = 45.0
SERVE_SECONDS = 5.0
ROUTES = "/-/routes"
"""Serve's own list of routes; whatever it answers, something that speaks HTTP is there."""


def check_clusters(
    fleet: Fleet, on_done: Callable[[], None] = lambda: None
) -> tuple[HostChecks, ...]:
    """Look at every Ray cluster at once. Nothing is changed there.

    Args:
        fleet: The clusters.
        on_done: Told whenever one has been looked at.
    """
    outcomes = all_at_once(_checked, list(fleet.clusters.items()), CLUSTER_SECONDS, on_done)
    pairs = zip(fleet.clusters.items(), outcomes, strict=True)
    return tuple(
        HostChecks(host=name, address=cluster.dashboard, checks=_checks(outcome))
        for (name, cluster), outcome in pairs
    )


def _checks(outcome: tuple[Check, ...] | Exception) -> tuple[Check, ...]:
    if not isinstance(outcome, Exception):
        return outcome
    late = isinstance(outcome, TimeoutError) and not outcome.args
    why = f"the look at it took more than {CLUSTER_SECONDS:g} s" if late else repr(outcome)
    return (broken("dashboard", why, "See whether the head of the cluster is overloaded."),)


def _checked(item: tuple[str, RayCluster]) -> tuple[Check, ...]:
    name, cluster = item
    try:
        seen = survey_cluster(name, cluster)
    except Failure as failure:
        found = f"{failure.facts.summary}: {failure.detail}"
        return (broken("dashboard", found, failure.suggestion),)
    return (fine("dashboard", seen.told), _serve(cluster.serve, seen))


def _serve(address: str, seen: ClusterSnapshot) -> Check:
    """Serve listens once it has an application; before that, silence is as it should be."""
    try:
        with suppress(Unusable):
            ask_engine_now(Question(address + ROUTES), SERVE_SECONDS)
    except (Late, Unreachable) as error:
        if not seen.applications:
            return Check(
                name="serve",
                state="absent",
                found=f"nothing answers at {address} yet: Serve starts with the first application",
            )
        applications = counted(len(seen.applications), "application")
        told = f"nothing answers at {address}, though {applications} run: {error}"
        fix = "`serve` has to be the address of Serve's proxy, reachable from here (port 8000)."
        return broken("serve", told, fix)
    return fine("serve", f"{address}, {counted(len(seen.applications), 'application')}")
