"""Where Podman's Docker-compatible socket is not what Docker's is."""

from __future__ import annotations

import docker
from docker.errors import APIError

from moorage.common.failures import Cause, Failure

COMPONENT = "Podman Engine"
CONFLICT = 409
TAKEN = "already in use"
"""Podman says so of a container's name, with the status of a mistake of its own."""


def is_podman(client: docker.DockerClient) -> bool:
    """Whether it is Podman that answers."""
    components = client.version().get("Components") or ()
    return any(component.get("Name") == COMPONENT for component in components)


def must_heed_requests(client: docker.DockerClient, host: str) -> None:
    """Refuse a daemon that would start a container without the accelerators asked for.

    Podman (4.3 to 5.1 at least) passes over `DeviceRequests`, and says nothing:
    https://github.com/podman-container-tools/podman/issues/22645

    Raises:
        Failure: `ACCELERATOR_RUNTIME_MISSING`.
    """
    if is_podman(client):
        raise Failure(
            Cause.ACCELERATOR_RUNTIME_MISSING,
            f"Podman on {host} gives no NVIDIA accelerators through its Docker-compatible socket",
            suggestion="Use Docker with NVIDIA's container toolkit on hosts with NVIDIA GPUs.",
        )


def is_taken(error: APIError) -> bool:
    """Whether a container was refused because there is one of its name."""
    return error.status_code == CONFLICT or TAKEN in str(error.explanation)
