"""A gateway on one host of the fleet, in front of a model on another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from docker.models.containers import Container

from moorage.adapters.gateway.host_channel import LABEL
from moorage.gateway.programs import HOST_FOLDER, HOST_USER
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.test_gateway import Gateway, Load
from tests.e2e.test_gateway_container import envoy_image
from tests.e2e.workplace import Workplace
from tests.fleet.fleet import FleetHost, TestFleet

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["envoy_image", "prefect_server", "tiny_llama", "workplace"]

NAME = "moorage-gateway-main-"


class HostGateway(Gateway):
    """A gateway whose Envoy runs on a host."""

    def __init__(self, place: Workplace, host: FleetHost, image: str) -> None:
        fleet = place.folder / "fleet.yaml"
        where = ("--host", host.name, "--fleet", fleet, "--open-access")
        super().__init__(place, "--container", "--image", image, *map(str, where))
        self.host = host

    @property
    def container(self) -> Container:
        [found] = self.host.daemon.client().containers.list(all=True, filters={"name": NAME})
        return found

    def answers(self, name: str) -> bool:
        try:
            return self.ask(name).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def status(self) -> dict[str, Any]:
        [found] = self.place.json("gateway", "status")
        return dict(found)


@pytest.fixture
def gateway(place: Workplace, equipped: TestFleet, envoy_image: str) -> Iterator[HostGateway]:
    host = equipped.host("w1")
    host.daemon.link_images(envoy_image)
    yield HostGateway(place, host, envoy_image)
    if place.ledger.gateways.all():
        place.run("gateway", "down", "--drain-seconds", "0")


def on_w2(place: Workplace, image: str, **more: Any) -> Path:
    placement = {"accelerators": 0, "ram": "64MiB", "host_labels": {"host": "w2"}}
    return place.spec(engine=container_engine(image, **more), placement=placement)


def deploy(place: Workplace, image: str, **more: Any) -> None:
    place.run("deploy", on_w2(place, image, **more), "--fleet", place.folder / "fleet.yaml")


def test_a_model_of_another_host_is_replaced_under_load_and_down_leaves_nothing(
    place: Workplace, gateway: HostGateway, lifecycle_image: str
) -> None:
    deploy(place, lifecycle_image, ROUND="0")
    assert gateway.url == f"http://{gateway.host.address}:{gateway.port}"
    assert gateway.ask("tiny").status_code == httpx.codes.OK
    first = gateway.container.id
    with Load(gateway, "tiny") as requests:
        for turn in ("1", "2"):
            deploy(place, lifecycle_image, ROUND=turn)
            requests.go_on(place)
    assert requests.failed == []
    assert gateway.container.id == first
    status = gateway.status()
    assert (status["state"], status["options"]["host"]["name"]) == ("running", "w1")
    name = place.named("tiny")
    place.wait_until(lambda: place.json("usage") != [])
    place.run("unload", name)
    refused = gateway.ask("tiny")
    assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert f"moorage load {name}" in refused.json()["error"]["message"]
    place.run("gateway", "down")
    client = gateway.host.daemon.client()
    assert client.containers.list(all=True, filters={"name": NAME}) == []
    assert client.containers.list(all=True, filters={"label": LABEL}) == []
    assert client.volumes.list() == []


def test_a_killed_envoy_a_killed_service_and_a_restarted_daemon_cost_no_route(
    place: Workplace, gateway: HostGateway, lifecycle_image: str
) -> None:
    deploy(place, lifecycle_image)
    killed = gateway.container
    killed.kill()
    place.wait_until(lambda: gateway.answers("tiny"))
    assert gateway.container.id != killed.id
    gateway.kill("service")
    deploy(place, lifecycle_image, ROUND="1")
    place.wait_until(lambda: gateway.answers("tiny"))
    gateway.host.daemon.kill()
    gateway.host.daemon.start()
    place.wait_until(lambda: gateway.answers("tiny"))
    place.wait_until(lambda: gateway.status()["state"] == "running")


def test_envoy_has_no_right_on_its_host(gateway: HostGateway) -> None:
    facts = gateway.container.attrs
    host = facts["HostConfig"]
    assert facts["Config"]["User"] == f"{HOST_USER}:{HOST_USER}"
    assert (host["Privileged"], host["ReadonlyRootfs"]) == (False, True)
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], None)
    assert host["SecurityOpt"] == ["no-new-privileges"]
    written = {mount["Destination"]: mount["RW"] for mount in facts["Mounts"]}
    assert written == {HOST_FOLDER: False, f"{HOST_FOLDER}/envoy": True}
    client = gateway.host.daemon.client()
    [program] = client.containers.list(filters={"label": LABEL})
    assert program.attrs["HostConfig"]["NetworkMode"] == "none"
