from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import docker, lifecycle_image, lifecycle_program
from tests.fleet.commands import missing
from tests.fleet.fleet import TestFleet

__all__ = ["docker", "lifecycle_image", "lifecycle_program"]


@pytest.fixture(scope="module")
def fleet(lifecycle_image: str) -> Iterator[TestFleet]:
    """Three hosts that have the tiny server's image."""
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    with TestFleet(3) as fleet:
        for host in fleet.hosts:
            host.daemon.load(lifecycle_image)
        yield fleet
