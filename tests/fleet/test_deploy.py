"""A model is deployed to remote hosts from the command line: staged, started, proven, retired."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from moorage.launch import LABEL_MODEL
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.conftest import HELPER
from tests.fleet.fleet import PORTS, FleetHost, TestFleet

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

WAYS = ("ssh", "tls")


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet) -> Iterator[Workplace]:
    workplace.environment["FLEET_KEY"] = equipped.key.read_text()
    yield workplace
    for host in equipped.hosts:
        assert containers(host) == []


def write_fleet(place: Workplace, fleet: TestFleet, way: str) -> None:
    hosts = [described(fleet, host, way) for host in fleet.hosts]
    with Path(place.folder, "fleet.yaml").open("w") as file:
        YAML().dump({"hosts": hosts, "helper_image": HELPER}, file)


def described(fleet: TestFleet, host: FleetHost, way: str) -> dict[str, Any]:
    common = {
        "name": host.name,
        "bind": host.address,
        "ports": PORTS,
        "store": str(host.daemon.folder / "store"),
    }
    if way == "tls":
        return common | {
            "address": host.tls,
            "tls": {"certificates": str(fleet.certificates.client)},
        }
    ssh = {"key": "FLEET_KEY", "known_hosts": str(fleet.known_hosts)}
    return common | {"address": f"{host.ssh}{host.daemon.socket}", "ssh": ssh}


def containers(host: FleetHost) -> list[str]:
    found = host.daemon.client().containers.list(all=True, filters={"label": LABEL_MODEL})
    return [container.name for container in found]


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
    files = [mount["source"] for mount in release["plan"]["containers"][0]["mounts"]]
    assert all(Path(source, "config.json").is_file() for source in files)
    assert "FLEET_KEY" in str(release["plan"]) or way == "tls"
    assert equipped.key.read_text() not in str(release)
    place.run("retire", place.named("tiny"))
    assert place.is_clean()
