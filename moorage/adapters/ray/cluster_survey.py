"""Looking at a Ray cluster: its version, its nodes' resources, what is free, what it serves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from moorage.adapters.ray.dashboard import RayDashboard
from moorage.adapters.system.parallel import all_at_once
from moorage.inventory.cluster_snapshot import GPU, ClusterSnapshot
from moorage.inventory.clusters import RayCluster
from moorage.inventory.fleet import Fleet

COUNTED = (GPU, "CPU")


def survey_cluster(name: str, cluster: RayCluster) -> ClusterSnapshot:
    """A cluster as it is now.

    Args:
        name: Its name in the fleet.
        cluster: What the fleet says about it.

    Raises:
        Failure: `CLUSTER_UNAVAILABLE`, `HOST_UNAUTHORIZED`, or `CLUSTER_UNSUITABLE` when what
            answers is no Ray with Serve.
    """
    dashboard = RayDashboard(cluster.access.url)
    version = dashboard.version()
    nodes = dashboard.nodes()
    total: defaultdict[str, float] = defaultdict(float)
    for resource, amount in (item for node in nodes for item in node.items()):
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
    """All clusters of a fleet at once, by name; why not, of those that could not be looked at."""
    items = list(fleet.clusters.items())
    found = all_at_once(lambda item: survey_cluster(*item), items, seconds, on_done)
    return dict(zip(fleet.clusters, found, strict=True))


def _free(usage: dict[str, list[float]]) -> dict[str, float] | None:
    """Ray counts every few seconds; right after its start it has counted nothing."""
    if "CPU" not in usage:
        return None
    pairs = {name: usage[name] for name in COUNTED if name in usage}
    return {name: there - held for name, (held, there) in pairs.items()}
