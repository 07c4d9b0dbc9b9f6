"""Volumes that containers of one replica share: the last one to go takes them along."""

from __future__ import annotations

from contextlib import suppress

import docker
from docker.errors import APIError, NotFound

from moorage.engines.launch import LABEL_LEDGER, LABEL_RELEASE

IN_USE = 409


def remove_volumes(client: docker.DockerClient, release: str, ledger: str) -> None:
    """Remove the volumes that were made for a release; what a container still uses stays.

    They are found by their labels: whoever removed the last container may have been killed then.

    Args:
        client: The daemon.
        release: The release.
        ledger: Identity of its ledger.
    """
    own = [f"{LABEL_RELEASE}={release}", f"{LABEL_LEDGER}={ledger}"]
    for volume in client.volumes.list(filters={"label": own}):
        with suppress(NotFound):
            try:
                volume.remove()
            except APIError as error:
                if error.status_code != IN_USE:
                    raise
