"""The test fleet is what it says: hosts apart from each other, and faults as in real life."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import docker
import httpx
import pytest
from docker.models.containers import Container
from docker.tls import TLSConfig

from tests.fleet.commands import missing, run
from tests.fleet.fleet import FleetHost, TestFleet

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

PORT = 18000


def serve(host: FleetHost, image: str, name: str = "serving") -> Container:
    arguments = ["vllm", "serve", "/model", "--host", "0.0.0.0", "--port", str(PORT)]
    return host.daemon.client().containers.run(
        image,
        command=arguments[1:],
        entrypoint=arguments[:1],
        name=name,
        ports={f"{PORT}/tcp": (host.address, PORT)},
        detach=True,
    )


def healthy(host: FleetHost, seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if httpx.get(f"http://{host.address}:{PORT}/health", timeout=1).status_code == 200:
                return True
        except httpx.HTTPError:
            time.sleep(0.1)
    return False


def test_hosts_publish_the_same_port_each_for_itself(
    fleet: TestFleet, lifecycle_image: str
) -> None:
    first, second, third = fleet.hosts
    containers = [serve(host, lifecycle_image) for host in (first, second)]
    try:
        assert healthy(first)
        assert healthy(second)
        assert not healthy(third, 1)
        assert {host.daemon.client().info()["Name"] for host in fleet.hosts} == {"w1", "w2", "w3"}
        assert [c.name for c in first.daemon.client().containers.list()] == ["serving"]
    finally:
        for container in containers:
            container.remove(force=True)


def test_a_daemon_is_reached_by_tls_only_with_certificates(fleet: TestFleet) -> None:
    host, folder = fleet.hosts[0], fleet.certificates.client
    pair = (str(folder / "cert.pem"), str(folder / "key.pem"))
    tls = TLSConfig(client_cert=pair, ca_cert=str(folder / "ca.pem"), verify=True)
    client = docker.DockerClient(base_url=host.tls, tls=tls, version="1.41", timeout=5)
    client.api.trust_env = False
    assert client.info()["Name"] == "w1"
    plain = docker.DockerClient(base_url=host.tls, version="1.41", timeout=5)
    with pytest.raises(docker.errors.DockerException, match="HTTP request to an HTTPS server"):
        plain.ping()


def test_a_daemon_is_reached_over_ssh(fleet: TestFleet) -> None:
    host = fleet.hosts[1]
    options = ["-i", fleet.key, "-o", f"UserKnownHostsFile={fleet.known_hosts}"]
    request = run("ssh", *options, host.ssh, "docker", "info", "--format", "{{.Name}}")
    assert request.stdout.strip() == "w2"


def test_a_cut_cable_hides_a_host_until_it_is_mended(
    fleet: TestFleet, lifecycle_image: str
) -> None:
    host = fleet.hosts[0]
    container = serve(host, lifecycle_image)
    try:
        assert healthy(host)
        host.link.cut()
        assert not healthy(host, 2)
        assert host.daemon.client().ping()
        host.link.mend()
        assert healthy(host)
    finally:
        host.link.mend()
        container.remove(force=True)


def test_containers_outlive_a_killed_daemon(fleet: TestFleet, lifecycle_image: str) -> None:
    host = fleet.hosts[2]
    serve(host, lifecycle_image)
    try:
        assert healthy(host)
        host.daemon.kill()
        assert healthy(host)
    finally:
        host.daemon.start()
    container = host.daemon.client().containers.get("serving")
    assert container.status == "running"
    assert healthy(host)
    container.remove(force=True)


def test_a_frozen_daemon_takes_connections_and_answers_nothing(fleet: TestFleet) -> None:
    host = fleet.hosts[2]
    host.daemon.freeze()
    try:
        asking = docker.DockerClient(base_url=host.unix, version="1.41", timeout=1)
        with pytest.raises(Exception, match="timed out"):
            asking.ping()
    finally:
        host.daemon.thaw()
    assert host.daemon.client().ping()


def test_a_host_may_have_a_small_disk_and_leaves_nothing_behind(docker: None) -> None:  # noqa: ARG001
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    with TestFleet(1, live_restore=False, disk_bytes=64 * 2**20) as fleet:
        disk = fleet.hosts[0].daemon.folder / "data"
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        assert free < 64 * 2**20
        traces = (str(fleet.folder), fleet.network.name)
    assert not fleet.folder.exists()
    assert traces[0] not in Path("/proc/self/mounts").read_text()
    assert traces[1] not in run("ip", "link").stdout
    assert traces[1] not in run("ip", "netns").stdout
    everyone = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert traces[0] not in everyone.stdout
