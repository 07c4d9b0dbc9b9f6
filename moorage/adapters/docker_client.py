"""A connection to a Docker daemon; what goes wrong on the way has a cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import docker
import requests
from docker.errors import APIError, DockerException

from moorage.failures import Cause, Failure

TIMEOUT_SECONDS = 60


@contextmanager
def docker_client(address: str, timeout: int = TIMEOUT_SECONDS) -> Iterator[docker.DockerClient]:
    """A client of a daemon.

    Args:
        address: As in the fleet; `local` means what the Docker client itself would use.
        timeout: Seconds that one answer may take.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, or `LAUNCH_REFUSED` for an answer that nobody expected.
    """
    try:
        yield _connect(address, timeout)
    except APIError as error:
        text = str(error.explanation or error)
        raise Failure(Cause.LAUNCH_REFUSED, f"Docker at {address}: {text}") from error
    except (DockerException, requests.exceptions.RequestException) as error:
        _connect.cache_clear()
        reason = str(error).splitlines()[0][:300]
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"Docker at {address}: {reason}") from error


@lru_cache
def _connect(address: str, timeout: int) -> docker.DockerClient:
    if address == "local":
        return docker.from_env(timeout=timeout)
    return docker.DockerClient(base_url=address, timeout=timeout)
