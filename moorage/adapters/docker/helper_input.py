"""Helper containers that get a line of input, the only channel for secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.adapters.docker import sdk

WITH_INPUT = {"OpenStdin": True, "StdinOnce": True, "AttachStdin": True}
"""Configuration of a container whose program reads its standard input once."""


def create_with_input(
    client: sdk.DockerClient, name: str, config: Mapping[str, Any]
) -> sdk.Container:
    """Create a container whose program reads its input; `config` is as `helper_config` returns it.

    Raises:
        DockerException: `ImageNotFound` without the image; `APIError` also for a name in use.
    """
    api: Any = client.api
    made = api.create_container_from_config({**config, **WITH_INPUT}, name)
    return client.containers.get(made["Id"])


def start_with_input(container: sdk.Container, line: str) -> None:
    """Start a container and write one line to its input."""
    stream = container.attach_socket(params={"stdin": 1, "stream": 1})
    container.start()
    raw: Any = getattr(stream, "_sock", stream)
    raw.sendall(line.encode())
    stream.close()
