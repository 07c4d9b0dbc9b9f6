"""Looking at a Ray cluster: its version, its nodes' resources, what is free, what it serves."""

from __future__ import annotations

from collections import defaultdict

from moorage.adapters.ray_dashboard import RayDashboard
from moorage.cluster import RayCluster
from moorage.placement.cluster import GPU, ClusterSnapshot

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


def _free(usage: dict[str, list[float]]) -> dict[str, float] | None:
    """Ray counts every few seconds; right after its start it has counted nothing."""
    if "CPU" not in usage:
        return None
    pairs = {name: usage[name] for name in COUNTED if name in usage}
    return {name: there - held for name, (held, there) in pairs.items()}
