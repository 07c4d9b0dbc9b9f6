"""A model is deployed to remote hosts from the command line: staged, started, proven, retired."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import containers, write_fleet

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

WAYS = ("ssh", "tls")


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet) -> Iterator[Workplace]:
    workplace.environment["FLEET_KEY"] = equipped.key.read_text()
    yield workplace
    for host in equipped.hosts:
        assert containers(host) == []


@pytest.mark.parametrize("way", WAYS)
def test_two_replicas_are_spread_over_remote_hosts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str, way: str
) -> None:
    write_fleet(place, equipped, way)
    spec = place.spec(
        engine=container_engine(lifecycle_image),
        placement={"accelerators": 0, "ram": "64MiB"},
        replicas=2,
    )
    release = place.json("deploy", spec)["release"]
    hosts = {workload["host"] for workload in release["workloads"]}
    assert len(hosts) == 2
    for workload in release["workloads"]:
        host = equipped.host(workload["host"])
        assert workload["endpoint"].startswith(f"http://{host.address}:18")
        assert httpx.get(f"{workload['endpoint']}/health").status_code == 200
        assert containers(host) == [workload["name"]]
    mounts = release["plan"]["containers"][0]["mounts"]
    files = [mount["source"] for mount in mounts if not mount["kept"]]
    assert all(Path(source, "config.json").is_file() for source in files)
    assert "FLEET_KEY" in str(release["plan"]) or way == "tls"
    assert equipped.key.read_text() not in str(release)
    place.run("retire", place.named("tiny"))
    assert place.is_clean()
