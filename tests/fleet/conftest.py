from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.engines.launch import LABEL_HELPER
from tests.e2e.conftest import docker, lifecycle_image, lifecycle_program
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.fleet.commands import missing
from tests.fleet.daemon import load
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import HELPER, containers, write_fleet

__all__ = ["docker", "lifecycle_image", "lifecycle_program"]


@pytest.fixture(scope="session")
def three_hosts(lifecycle_image: str) -> Iterator[TestFleet]:
    """Three hosts for all modules of this process, for it takes half a minute to start them."""
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    forget_clients()  # another fleet may have had the same addresses, and other certificates
    with TestFleet(3) as fleet:
        load([host.daemon for host in fleet.hosts], lifecycle_image)
        yield fleet


@pytest.fixture(scope="module")
def fleet(three_hosts: TestFleet, lifecycle_image: str) -> TestFleet:
    """Three hosts that have the tiny server's image, and nothing else."""
    return as_new(three_hosts, lifecycle_image)


@pytest.fixture(scope="module")
def equipped(three_hosts: TestFleet, lifecycle_image: str) -> TestFleet:
    """Three hosts that have the tiny server's image and the helper's."""
    build_helper()
    as_new(three_hosts, lifecycle_image, HELPER)
    load([host.daemon for host in three_hosts.hosts], HELPER)
    return three_hosts


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


def as_new(fleet: TestFleet, *images: str) -> TestFleet:
    """Hosts without anything that an earlier module left there."""
    forget_clients()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda host: host.reset(*images), fleet.hosts))
    return fleet


def build_helper() -> None:
    """Have the helper's image on this machine."""
    subprocess.run([REPOSITORY / "scripts" / "build_helper_image.sh"], check=True)
