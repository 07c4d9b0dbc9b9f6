"""Surveys and checks of Ray clusters: version, resources, applications, Serve's address.

What sends requests is imported at its first use: most fleets have no cluster.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from moorage.adapters.system.parallel import map_parallel
from moorage.common.units import counted
from moorage.inventory.checks import Check, HostChecks, broken, broken_by, fine
from moorage.inventory.clusters import GPU, ClusterSnapshot, RayCluster
from moorage.inventory.fleet import Fleet

COUNTED = (GPU, "CPU")

CLUSTER_SECONDS = 45.0
SERVE_SECONDS = 5.0
ROUTES = "/-/routes"
"""Path of Serve's list of routes. Any answer shows that Serve's address speaks HTTP."""


def survey_cluster(name: str, cluster: RayCluster) -> ClusterSnapshot:
    """The current state of a cluster.

    Raises:
        Failure: `CLUSTER_UNAVAILABLE`, `HOST_UNAUTHORIZED`, or `CLUSTER_UNSUITABLE` when it is
            not Ray with Serve.
    """
    from moorage.adapters.ray.dashboard import RayDashboard  # noqa: PLC0415  (see above)

    dashboard = RayDashboard(cluster.access.url)
    version = dashboard.version()
    nodes = dashboard.nodes()
    total: defaultdict[str, float] = defaultdict(float)
    for node in nodes:
        for resource, amount in node.items():
            total[resource] += amount
    return ClusterSnapshot(
        name=name,
        address=cluster.access.url,
        serve=cluster.serve,
        autoscales=cluster.autoscales,
        version=version,
        nodes=len(nodes),
        total=dict(total),
        free=_free(dashboard.usage()),
        applications=tuple(dashboard.details().get("applications", {})),
    )


def survey_clusters(
    fleet: Fleet, seconds: float, on_done: Callable[[], None] = lambda: None
) -> dict[str, ClusterSnapshot | Exception]:
    """Survey all clusters of a fleet in parallel; snapshots or errors by name."""
    items = list(fleet.clusters.items())
    found = map_parallel(lambda item: survey_cluster(*item), items, seconds, on_done)
    return dict(zip(fleet.clusters, found, strict=True))


def _free(usage: dict[str, list[float]]) -> dict[str, float] | None:
    """Free resources; None right after Ray's start, before its first count."""
    if "CPU" not in usage:
        return None
    pairs = {name: usage[name] for name in COUNTED if name in usage}
    return {name: there - held for name, (held, there) in pairs.items()}


def check_clusters(
    fleet: Fleet, on_done: Callable[[], None] = lambda: None
) -> tuple[HostChecks, ...]:
    """Check every Ray cluster in parallel, without changes."""
    fix = "See whether the head of the cluster is overloaded."
    outcomes = map_parallel(_check_cluster, list(fleet.clusters.items()), CLUSTER_SECONDS, on_done)
    checked = []
    for (name, cluster), outcome in zip(fleet.clusters.items(), outcomes, strict=True):
        if isinstance(outcome, Exception):
            outcome = (broken_by("dashboard", outcome, CLUSTER_SECONDS, fix),)
        checked.append(HostChecks(host=name, address=cluster.dashboard, checks=outcome))
    return tuple(checked)


def _check_cluster(item: tuple[str, RayCluster]) -> tuple[Check, ...]:
    name, cluster = item
    seen = survey_cluster(name, cluster)
    return (fine("dashboard", seen.summary), _serve(cluster.serve, seen))


def _serve(address: str, seen: ClusterSnapshot) -> Check:
    """Check that Serve answers; it listens only once it has an application."""
    from moorage.adapters.engines import engine_http  # noqa: PLC0415  (see above)

    applications = counted(len(seen.applications), "application")
    try:
        with suppress(engine_http.Unusable):
            engine_http.ask_engine_now(engine_http.Question(address + ROUTES), SERVE_SECONDS)
    except (engine_http.Late, engine_http.Unreachable) as error:
        if not seen.applications:
            found = f"nothing answers at {address} yet: Serve starts with the first application"
            return Check(name="serve", state="absent", found=found)
        found = f"nothing answers at {address}, though {applications} run: {error}"
        fix = "`serve` has to be the address of Serve's proxy, reachable from here (port 8000)."
        return broken("serve", found, fix)
    return fine("serve", f"{address}, {applications}")
