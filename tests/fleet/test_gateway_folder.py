"""The files of a gateway on a host, reached in both ways, while its program is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from docker.errors import NotFound

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.gateway.host_channel import LABEL, HostChannel
from moorage.adapters.gateway.host_folder import HostFolder
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import planned_workload
from moorage.gateway.gateway import GatewayHost, GatewayOptions
from moorage.gateway.programs import envoy_on_host
from moorage.inventory.access import Access
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

ENVOY = "moorage-gateway-test-0"


@pytest.fixture(params=["tls", "ssh"])
def channel(
    request: pytest.FixtureRequest, equipped: TestFleet, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostChannel]:
    monkeypatch.setenv("FLEET_KEY", equipped.key.read_text())
    host = equipped.host("w1")
    ways = {
        "tls": Access(address=host.tls, certificates=str(equipped.certificates.client)),
        "ssh": Access(
            address=f"{host.ssh}{host.daemon.socket}",
            key="FLEET_KEY",
            known_hosts=str(equipped.known_hosts),
        ),
    }
    known = GatewayHost(
        name="w1", address=ways[request.param].url, bind=host.address, helper_image=HELPER
    )
    envoy = envoy_on_host(ENVOY, known, GatewayOptions(bind=host.address, host=known), "")
    running = HostChannel(known, envoy)
    yield running

    def is_gone() -> bool:
        running.remove()
        DockerRuntime(known.address).stop(planned_workload(envoy), 0)
        return host.daemon.client().volumes.list() == []

    until(is_gone)  # a request that the cut held back may still make a container


def kill_program(host: FleetHost) -> None:
    [program] = host.daemon.client().containers.list(filters={"label": LABEL})
    program.kill()
    with suppress(NotFound):  # it is gone already
        program.wait(condition="removed")


def test_files_outlive_the_program_that_writes_them(
    channel: HostChannel, equipped: TestFleet
) -> None:
    folder, large = HostFolder(channel), "x" * 3_000_000
    assert folder.state("config/routes.json") is None
    folder.write("config/routes.json", {"routes": large})
    kill_program(equipped.host("w1"))
    found = folder.state("config/routes.json")
    assert found
    assert found.size == len(large) + len('{"routes": ""}')
    assert folder.read("config/routes.json", 0, 12) == b'{"routes": "'


def test_a_host_that_is_cut_off_is_a_failure_and_comes_back(
    channel: HostChannel, equipped: TestFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.host_channel.ANSWER_SECONDS", 2.0)
    folder, link = HostFolder(channel), equipped.host("w1").link
    until(lambda: _answers(folder))  # a tunnel of an earlier test may be broken still
    link.cut()
    try:
        with pytest.raises(Failure) as caught:
            folder.state("bootstrap.json")
    finally:
        link.mend()
    assert caught.value.cause == Cause.RUNTIME_UNAVAILABLE
    until(lambda: _answers(folder))


def _answers(folder: HostFolder) -> bool:
    try:
        folder.write("bootstrap.json", {})
    except Failure:
        return False
    return folder.state("bootstrap.json") is not None
