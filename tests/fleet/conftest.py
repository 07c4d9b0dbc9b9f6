from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import methodcaller

import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.engines.labels import LABEL_HELPER
from tests.e2e.conftest import docker, lifecycle_image, lifecycle_program
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.fleet.commands import missing
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import HELPER, containers, write_fleet

__all__ = ["docker", "lifecycle_image", "lifecycle_program"]


@pytest.fixture(scope="session")
def three_hosts(lifecycle_image: str) -> Iterator[TestFleet]:
    """Three hosts for all modules of this process, for it takes seconds to start them."""
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    build_helper()
    forget_clients()  # another fleet may have had the same addresses, and other certificates
    with TestFleet(3, images=(lifecycle_image, HELPER)) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def equipped(three_hosts: TestFleet, lifecycle_image: str) -> TestFleet:
    """Three hosts that have the tiny server's image and the helper's, and nothing else."""
    forget_clients()
    reset = methodcaller("reset", lifecycle_image, HELPER)
    with ThreadPoolExecutor() as pool:
        list(pool.map(reset, three_hosts.hosts))
    return three_hosts


@pytest.fixture(scope="module")
def fleet(equipped: TestFleet) -> TestFleet:
    """The same hosts, in modules that have no other fleet."""
    return equipped


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet) -> Iterator[Workplace]:
    """A place whose fleet is the hosts, over TLS; what is left there goes."""
    write_fleet(workplace, equipped, "tls")
    yield workplace
    for host in equipped.hosts:
        for name in containers(host):
            host.daemon.client().containers.get(name).remove(force=True)


@pytest.fixture
def no_helper_is_left(equipped: TestFleet) -> Iterator[None]:
    """No helper container outlives a test."""
    forget_clients()
    yield
    for host in equipped.hosts:
        listed = host.daemon.client().containers.list(all=True, filters={"label": LABEL_HELPER})
        assert listed == []


def build_helper() -> None:
    """Have the helper's image on this machine."""
    subprocess.run([REPOSITORY / "scripts" / "build_helper_image.sh"], check=True)
