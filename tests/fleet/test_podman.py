"""A host with Podman instead of Docker: everything goes through its Docker-compatible socket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

import httpx
import pytest
from docker.errors import APIError
from ruamel.yaml import YAML

from moorage.adapters.docker.client import connect, is_name_taken
from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.helper_job import HelperJob, run_helper
from moorage.adapters.docker.images import DockerImages
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import parse_access
from moorage.inventory.survey.vendors import NVIDIA, handed_to
from tests.builders import a_container
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet import commands, podman
from tests.fleet.conftest import build_helper
from tests.fleet.keys import make_ssh_key
from tests.fleet.network import Network
from tests.fleet.podman import Podman
from tests.fleet.sites import HELPER, containers
from tests.fleet.sshd import Sshd
from tests.larger import push_larger
from tests.local_registry import LocalRegistry, require_registry
from tests.narrow_way import NarrowWay

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

LARGER = "team/larger"


class Site:
    """A host with Podman, SSH, and a registry that it may pull from."""

    def __init__(self, stack: ExitStack, image: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mfp-"))
        stack.callback(rmtree, folder, ignore_errors=True)
        network = Network()
        stack.callback(network.close)
        self.name, self.link = "pod", network.link(1)
        stack.callback(self.link.close)
        self.address = self.link.address
        registry = LocalRegistry(folder / "registry")
        stack.callback(registry.close)
        registry.start()
        self.digest = push_larger(registry, LARGER, "v1", image, 1_000_000)
        self.way = NarrowWay(registry.host, network.address)
        stack.callback(self.way.close)
        self.daemon = Podman(self.name, self.link, folder / "podman", self.way.host)
        stack.callback(self.daemon.close)
        self.daemon.start()
        self.daemon.load(image, HELPER)
        self.key = make_ssh_key(folder / "ssh" / "id")
        sshd = Sshd(
            self.link.address,
            folder / "sshd",
            self.key.with_suffix(".pub"),
            self.daemon.socket,
            entering=self.link.entering,
        )
        stack.callback(sshd.stop)
        sshd.start()
        self.known_hosts = folder / "ssh" / "known_hosts"
        self.known_hosts.write_text(sshd.known_host)
        self.store = folder / "store"

    def described(self, way: str) -> dict[str, Any]:
        """The host as a fleet file has it, reached over `ssh` or `unix`."""
        common = {"name": self.name, "bind": self.address, "ports": "18000-18039"}
        if way == "unix":
            return common | {"address": f"unix://{self.daemon.socket}"}
        ssh = {"key": "FLEET_KEY", "known_hosts": str(self.known_hosts)}
        address = f"ssh://root@{self.address}{self.daemon.socket}"
        return common | {"address": address, "ssh": ssh, "store": str(self.store)}

    def write(self, place: Workplace, way: str) -> None:
        place.environment["FLEET_KEY"] = self.key.read_text()
        content = {
            "hosts": [self.described(way)],
            "helper_image": HELPER,
            "registries": {"insecure": [self.way.host]},
        }
        with Path(place.folder, "fleet.yaml").open("w") as file:
            YAML().dump(content, file)


@pytest.fixture(scope="module")
def site(lifecycle_image: str) -> Iterator[Site]:
    if reason := commands.missing() or podman.missing():
        pytest.skip(f"no Podman: {reason}")
    require_registry()
    build_helper()
    with ExitStack() as stack:
        yield Site(stack, lifecycle_image)


@pytest.fixture
def place(workplace: Workplace, site: Site, request: pytest.FixtureRequest) -> Iterator[Workplace]:
    """Reaches it over SSH, unless the test says otherwise."""
    site.write(workplace, getattr(request, "param", "ssh"))
    yield workplace
    left = containers(site)
    for name in left:
        site.daemon.client().containers.get(name).remove(force=True)
    assert left == []


def a_spec(place: Workplace, image: str, behaviour: str = "ok", **fields: Any) -> Path:
    placement = {"accelerators": 0, "ram": "64MiB"}
    engine = container_engine(image, behaviour)
    return place.spec(**{"engine": engine, "placement": placement, **fields})


@pytest.mark.parametrize("place", ["unix", "ssh"], indirect=True)
def test_a_model_is_deployed_seen_and_retired(
    place: Workplace, site: Site, lifecycle_image: str
) -> None:
    spec, name = a_spec(place, lifecycle_image), place.named("tiny")
    release = place.json("deploy", spec)["release"]
    (workload,) = release["workloads"]
    assert containers(site) == [workload["name"]]
    assert httpx.get(f"{workload['endpoint']}/health").status_code == 200
    (seen,) = place.json("status", name)
    assert (seen["alive"], seen["observed"]) == (True, "the container is running")
    assert "vLLM version 0.32.0" in place.run("logs", name).stdout
    assert place.json("deploy", spec)["outcome"] == "unchanged"
    place.run("retire", name)
    assert place.is_clean()


@pytest.mark.parametrize(
    ("behaviour", "output"),
    # Podman 4.3 does not tell that it was the kernel, but that nobody asked for the kill.
    [("die", "exited with code 1"), ("oom", "it ran out of memory")],
)
def test_an_engine_that_ends_is_told_with_its_cause(
    place: Workplace, lifecycle_image: str, behaviour: str, output: str
) -> None:
    failure = place.json("deploy", a_spec(place, lifecycle_image, behaviour), code=6)["error"]
    assert output in failure["detail"] + failure["suggestion"]
    assert place.is_clean()


def test_an_image_is_pulled_by_its_digest(place: Workplace, site: Site) -> None:
    reference = f"{site.way.host}/{LARGER}:v1"
    for image in site.daemon.client().images.list():
        if any(name.startswith(site.way.host) for name in image.attrs["RepoDigests"] or ()):
            image.remove(force=True)
    release = place.json("deploy", a_spec(place, reference))["release"]
    assert release["image"]["digest"] == site.digest
    found = DockerImages(f"unix://{site.daemon.socket}").find(reference)
    assert found is not None
    assert site.digest in found.digests
    place.run("retire", place.named("tiny"))
    missing = place.json("deploy", a_spec(place, f"{site.way.host}/team/none:v1"), code=5)["error"]
    assert missing["cause"] == "image-missing"
    assert place.is_clean()


def test_an_engine_outlives_the_service(place: Workplace, site: Site, lifecycle_image: str) -> None:
    spec = a_spec(place, lifecycle_image)
    place.run("deploy", spec)
    site.daemon.kill()
    try:
        error = place.json("deploy", spec, code=8)["error"]
        assert error["cause"] == "runtime-unavailable"
    finally:
        site.daemon.start()
    assert place.json("deploy", spec)["outcome"] == "unchanged"
    place.run("retire", place.named("tiny"))
    assert place.is_clean()


def test_gpus_are_refused_instead_of_forgotten(site: Site, lifecycle_image: str) -> None:
    address = f"unix://{site.daemon.socket}"
    wanted = a_container(
        address=address, image=lifecycle_image, accelerator_type="cuda", devices=("0",)
    )
    with pytest.raises(Failure, match="gives no NVIDIA accelerators") as caught:
        DockerRuntime(address).start(wanted, {})
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    with pytest.raises(Failure, match="gives no NVIDIA accelerators"):
        run_helper(parse_access(address), HelperJob(HELPER, (), "x", 9, handed_to(NVIDIA, 1)))
    lacking = wanted.model_copy(update={"accelerator_type": "rocm", "devices": ()})
    nodes = lacking.isolation.model_copy(update={"nodes": ("/dev/none",)})
    with pytest.raises(Failure) as caught:
        DockerRuntime(address).start(lacking.model_copy(update={"isolation": nodes}), {})
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert site.daemon.client().containers.list(all=True) == []


def test_its_own_words_are_understood(site: Site, lifecycle_image: str) -> None:
    client = connect(parse_access(f"unix://{site.daemon.socket}"))
    assert lifecycle_image in DockerImages(f"unix://{site.daemon.socket}").names()
    first = client.containers.create(lifecycle_image, name="one")
    try:
        with pytest.raises(APIError) as caught:
            client.containers.create(lifecycle_image, name="one")
        assert is_name_taken(caught.value)
    finally:
        first.remove(force=True)


def test_the_fleet_is_well(place: Workplace) -> None:
    (host,) = place.json("fleet", "check", code=None)
    # The disk may be nearly full where this test runs; the rest may not be wrong.
    broken = {check["name"] for check in host["checks"] if check["state"] == "broken"}
    assert broken <= {"disk of images", "disk of models"}
    assert {"reachability", "Docker"} <= {check["name"] for check in host["checks"]}
