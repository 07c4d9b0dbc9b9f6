"""Ray clusters: their entries in the fleet file, and how to reach them."""

from __future__ import annotations

from pydantic import Field, field_validator

from moorage.common.units import counted
from moorage.common.values import InputValue, Value
from moorage.inventory.access import Access
from moorage.spec import SecretName

GPU = "GPU"
"""Ray's resource name for accelerators of NVIDIA and AMD."""


class ClusterSnapshot(Value):
    """A Ray cluster at one moment.

    Attributes:
        address: How to reach its dashboard, as `Access.url` returns it.
        total: Resources of all nodes by Ray's name: `GPU`, `CPU`, `accelerator_type:H100`, ...
        free: The unused part of `total`; None = the cluster does not report it (yet).
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
    def summary(self) -> str:
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
        """Number of accelerators of all nodes."""
        return int(self.total.get(GPU, 0))

    @property
    def accelerators_free(self) -> int | None:
        """Number of unused accelerators; None = the cluster does not report it."""
        return None if self.free is None else int(self.free.get(GPU, 0))


def application_name(release: str) -> str:
    """The name of a release's application on a Ray cluster."""
    return f"moorage-{release}"


URL_PATTERN = r"^https?://([\w][\w.-]*|\[[0-9a-fA-F:]+\])(:\d{1,5})?(/[\w./-]*)?$"
URL_IN_WORDS = "an address such as http://head:8265"


class RayCluster(InputValue):
    """A running Ray cluster, on which Ray Serve serves models."""

    dashboard: str = Field(
        pattern=URL_PATTERN,
        description="Address of its dashboard, whose REST API deploys applications, such as"
        " `http://head:8265`.",
    )
    serve: str = Field(
        pattern=URL_PATTERN,
        description="Address under which Ray Serve answers requests, such as `http://head:8000`.",
    )
    token: SecretName | None = Field(
        None,
        description="Name of the secret with the token that the dashboard requires"
        " (`RAY_AUTH_MODE=token`, Ray 2.52 or newer, or a proxy in front of it).",
    )
    autoscales: bool = Field(
        False,
        description="Whether the cluster adds nodes when they are needed. A model is then not"
        " refused for what the cluster lacks now.",
    )

    @field_validator("dashboard", "serve")
    @classmethod
    def _strip_slash(cls, url: str) -> str:
        return url.rstrip("/")

    @property
    def access(self) -> Access:
        """How to reach its dashboard."""
        return Access(address=self.dashboard, token=self.token or "")
