"""A Ray cluster at one moment: what it is, and what resources its nodes have."""

from __future__ import annotations

from moorage.common.units import counted
from moorage.common.values import Value

GPU = "GPU"
"""Ray's name of accelerators of NVIDIA and AMD."""


class ClusterSnapshot(Value):
    """A Ray cluster at one moment.

    Attributes:
        name: As in the fleet.
        address: The way to its dashboard, as `ClusterAccess.url` writes it.
        serve: Base URL under which Ray Serve answers.
        autoscales: Whether nodes are added when they are needed.
        version: Version of its Ray.
        nodes: Nodes that are alive.
        total: Resources of all nodes by Ray's name: `GPU`, `CPU`, `accelerator_type:H100`, ...
        free: What of them nobody holds; None = the cluster does not tell (yet).
        applications: Names of the applications that it serves.
    """

    name: str
    address: str
    serve: str
    autoscales: bool = False
    version: str
    nodes: int = 0
    total: dict[str, float] = {}
    free: dict[str, float] | None = None
    applications: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The cluster in one line."""
        free = self.accelerators_free
        idle = "" if free is None else f", {free} of them free"
        return (
            f"Ray {self.version}, {counted(self.nodes, 'node')}:"
            f" {counted(self.accelerators, 'accelerator')}{idle},"
            f" {counted(int(self.total.get('CPU', 0)), 'CPU')}"
        )

    @property
    def accelerators(self) -> int:
        """Accelerators of all nodes."""
        return int(self.total.get(GPU, 0))

    @property
    def accelerators_free(self) -> int | None:
        """Those that nobody holds; None = the cluster does not tell."""
        return None if self.free is None else int(self.free.get(GPU, 0))


def application_name(release: str) -> str:
    """The name of a release's application on a Ray cluster."""
    return f"moorage-{release}"
