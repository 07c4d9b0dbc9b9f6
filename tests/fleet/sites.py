"""Fleet files of the test fleet, and what runs there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ruamel.yaml import YAML

from moorage.engines.labels import LABEL_MODEL
from tests.e2e.workplace import Workplace
from tests.fleet.daemon import Daemon
from tests.fleet.fleet import PORTS, FleetHost, TestFleet
from tests.fleet.podman import Podman

HELPER = "moorage/helper:1"


class RunsContainers(Protocol):
    """A host, whatever else it has."""

    @property
    def daemon(self) -> Daemon | Podman: ...


def write_fleet(place: Workplace, fleet: TestFleet, way: str, **more: Any) -> None:
    """Give a workplace the hosts, reached over `ssh` or `tls`, and more of a fleet file."""
    hosts = [described(fleet, host, way) for host in fleet.hosts]
    with Path(place.folder, "fleet.yaml").open("w") as file:
        YAML().dump({"hosts": hosts, "helper_image": HELPER} | more, file)


def described(fleet: TestFleet, host: FleetHost, way: str) -> dict[str, Any]:
    """One host as a fleet file has it."""
    common = {
        "name": host.name,
        "labels": {"host": host.name},
        "bind": host.address,
        "ports": PORTS,
        "store": str(host.daemon.folder / "store"),
    }
    if way == "tls":
        certificates = str(fleet.certificates.client)
        return common | {"address": host.tls, "tls": {"certificates": certificates}}
    ssh = {"key": "FLEET_KEY", "known_hosts": str(fleet.known_hosts)}
    return common | {"address": f"{host.ssh}{host.daemon.socket}", "ssh": ssh}


def containers(host: RunsContainers) -> list[str]:
    """Names of the engines' containers, in whatever state."""
    found = host.daemon.client().containers.list(all=True, filters={"label": LABEL_MODEL})
    return [str(container.name) for container in found]
