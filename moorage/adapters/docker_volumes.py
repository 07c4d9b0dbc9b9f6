"""Volumes that containers of one replica share: the last one to go takes them along."""

from __future__ import annotations

from contextlib import suppress

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from moorage.launch import LABEL_LEDGER, LABEL_RELEASE

IN_USE = 409


def remove_volumes(client: docker.DockerClient, container: Container) -> None:
    """Remove the volumes that were made for a container, which is gone; others may still use them.

    Args:
        client: The daemon.
        container: As it was seen before it was removed.
    """
    own = {name: container.labels.get(name) for name in (LABEL_RELEASE, LABEL_LEDGER)}
    for mount in container.attrs.get("Mounts") or ():
        if mount.get("Type") != "volume":
            continue
        with suppress(NotFound):
            volume = client.volumes.get(mount["Name"])
            labels = volume.attrs.get("Labels") or {}
            if {name: labels.get(name) for name in own} != own:
                continue
            try:
                volume.remove()
            except APIError as error:
                if error.status_code != IN_USE:
                    raise
