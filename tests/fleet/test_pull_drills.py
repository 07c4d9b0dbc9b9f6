"""What befalls hosts and registries while an image is pulled: it goes on, or says who was away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import docker.errors
import pytest

from tests.e2e.conftest import prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import a_spec, befalls, ended, leaves_nothing, pinned, within
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import containers, write_fleet
from tests.larger import push_larger
from tests.local_registry import LocalRegistry, require_registry
from tests.narrow_way import NarrowWay

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

IMAGE = "team/larger"
SIZE = 12 * 2**20
RATE = 2**20
SOME = 2 * 2**20
"""So much has come when something happens."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, lifecycle_image: str) -> Iterator[Any]:
    require_registry()
    registry = LocalRegistry(tmp_path_factory.mktemp("registries") / "one")
    registry.start()
    push_larger(registry, IMAGE, "v1", lifecycle_image, SIZE)
    yield registry
    registry.close()


@pytest.fixture
def way(registry: LocalRegistry, equipped: TestFleet) -> Iterator[NarrowWay]:
    """Through which hosts pull: a pull takes 12 s."""
    way = NarrowWay(registry.host, equipped.network.address, RATE)
    yield way
    way.close()
    for host in equipped.hosts:
        forget(host, way)


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet, way: NarrowWay) -> Iterator[Workplace]:
    write_fleet(workplace, equipped, "tls", registries={"insecure": [way.host]})
    yield workplace
    for host in equipped.hosts:
        for name in containers(host):
            host.daemon.client().containers.get(name).remove(force=True)


def forget(host: FleetHost, way: NarrowWay) -> None:
    """Take what was pulled off a host."""
    client = host.daemon.client()
    for image in client.images.list():
        names = [*(image.attrs["RepoTags"] or ()), *(image.attrs["RepoDigests"] or ())]
        if any(name.startswith(way.host) for name in names):
            with suppress(docker.errors.APIError):
                image.remove(force=True)


def answer(output: str) -> dict[str, Any]:
    """The failure that a command printed as JSON."""
    return dict(json.loads(output[output.index("{") : output.rindex("}") + 1])["error"])


def test_a_cable_that_is_cut_for_a_moment_while_an_image_is_pulled(
    place: Workplace, equipped: TestFleet, way: NarrowWay
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, f"{way.host}/{IMAGE}:v1")
    with within(100, "a pull of 12 s, its cable cut for 8 s"):
        running = befalls(place, spec, lambda: way.passed > SOME, host.link.cut)
        mended = threading.Timer(8, host.link.mend)
        mended.start()
        code, output = ended(running)
        mended.join()
    assert code == 0, output
    assert SIZE <= way.passed < 2 * SIZE
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, equipped)


def test_a_cable_that_stays_cut_while_an_image_is_pulled(
    place: Workplace, equipped: TestFleet, way: NarrowWay
) -> None:
    host = equipped.hosts[0]
    image = f"{way.host}/{IMAGE}:v1"
    spec = a_spec(place, image)
    try:
        with within(150, "a pull whose cable stays cut"):
            running = befalls(place, spec, lambda: way.passed > SOME, host.link.cut)
            place.run("deploy", place.spec("other", **pinned(image, host="w2")))
            code, output = ended(running)
    finally:
        host.link.mend()
    failure = answer(output)
    assert (code, failure["cause"]) == (8, "runtime-unavailable"), output
    assert host.address in failure["detail"]
    assert {claim.host for claim in place.claims()} == {"w2"}
    place.run("retire", place.named("other"))
    way.set_rate(0)
    place.run("deploy", spec)
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, equipped)


def test_a_registry_that_is_down_before_a_pull(
    place: Workplace, equipped: TestFleet, way: NarrowWay
) -> None:
    way.set_rate(0)
    image = f"{way.host}/{IMAGE}:v1"
    there = place.json("deploy", place.spec("other", **pinned(image, host="w2")))["release"]
    place.run("retire", place.named("other"))
    way.close()
    with within(60, "a deploy whose registry is down"):
        refused = place.json("deploy", a_spec(place, image), code=5)["error"]
    assert refused["cause"] == "image-pull-failed"
    assert way.host in refused["detail"]
    assert "w1" in refused["detail"]
    assert refused["suggestion"]
    leaves_nothing(place, equipped)
    # Who has it needs no registry.
    again = place.json("deploy", place.spec("other", **pinned(image, host="w2")))["release"]
    assert again["image"]["digest"] == there["image"]["digest"]
    place.run("retire", place.named("other"))
    leaves_nothing(place, equipped)


def test_a_registry_that_goes_down_in_the_middle_of_a_pull(
    place: Workplace, equipped: TestFleet, way: NarrowWay
) -> None:
    spec = a_spec(place, f"{way.host}/{IMAGE}:v1")
    with within(200, "a pull whose registry goes down"):
        code, output = ended(befalls(place, spec, lambda: way.passed > SOME, way.close))
    failure = answer(output)
    assert (code, failure["cause"]) == (5, "image-pull-failed"), output
    assert way.host in failure["detail"]
    assert "w1" in failure["detail"]
    leaves_nothing(place, equipped)


def test_a_pull_that_takes_too_long_ends_at_its_deadline(
    place: Workplace, equipped: TestFleet, way: NarrowWay
) -> None:
    way.set_rate(50_000)
    deadlines = {"deadlines": {"image_seconds": 20}}
    spec = a_spec(place, f"{way.host}/{IMAGE}:v1", readiness=deadlines)
    with within(60, "a pull of minutes that may take 20 s"):
        failure = place.json("deploy", spec, code=5)["error"]
    assert failure["cause"] == "image-pull-timeout"
    assert "after 20 s" in failure["detail"]
    assert "w1" in failure["detail"]
    leaves_nothing(place, equipped)
