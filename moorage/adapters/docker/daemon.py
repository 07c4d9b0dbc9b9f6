"""A Docker daemon that is asked something; what goes wrong on the way has a cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import docker
import requests
from docker.errors import APIError, DockerException

from moorage.adapters.docker.client import READ_SECONDS, connect, forget_clients
from moorage.adapters.docker.errors import reach_failure
from moorage.common.failures import Cause
from moorage.inventory.access import parse_access


@contextmanager
def daemon(address: str, read_seconds: int = READ_SECONDS) -> Iterator[docker.DockerClient]:
    """A client of a daemon.

    Args:
        address: As in the fleet; `local` means what the Docker client itself would use.
        read_seconds: How long it may be silent.

    Raises:
        Failure: As the daemon's words say: `RUNTIME_UNAVAILABLE`, `HOST_UNTRUSTED`,
            `HOST_UNAUTHORIZED`; `LAUNCH_REFUSED` for an answer that nobody expected.
    """
    access = parse_access(address)
    try:
        yield connect(access, read_seconds)
    except APIError as error:
        raise reach_failure(error, access.address, Cause.LAUNCH_REFUSED) from error
    except (DockerException, requests.exceptions.RequestException) as error:
        forget_clients()
        raise reach_failure(error, access.address) from error
