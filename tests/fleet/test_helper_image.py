"""The helper's image comes to a host once, by its digest, with the account of its registry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import docker.errors
import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.adapters.docker.helper_image import ensure_helper_image
from moorage.adapters.hosts.remote_host import describe
from moorage.adapters.hosts.survey import survey_host
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.inventory.registries import Registries, RegistryLogin
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.facts import ARCHITECTURES
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER
from tests.larger import push_larger
from tests.local_registry import PASSWORD, USER, LocalRegistry, require_registry
from tests.narrow_way import NarrowWay
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

SECRET = "REGISTRY_PASSWORD"
PATH = "team/helper"
SIZE = 3 * 2**20
"""Of its last layer; the one below it is that of the helper's image, which all hosts have."""


@pytest.fixture(scope="module")
def pushed(
    tmp_path_factory: pytest.TempPathFactory, equipped: TestFleet
) -> Iterator[tuple[LocalRegistry, str]]:
    assert equipped  # it has built the helper's image
    require_registry()
    registry = LocalRegistry(tmp_path_factory.mktemp("helper") / "one", protected=True)
    registry.start()
    yield registry, push_larger(registry, PATH, "v1", HELPER, SIZE)
    registry.close()


@pytest.fixture
def way(
    pushed: tuple[LocalRegistry, str], equipped: TestFleet, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NarrowWay]:
    """The first host has no such image, and a way to pull it."""
    monkeypatch.setenv(SECRET, PASSWORD)
    way = NarrowWay(pushed[0].host, equipped.network.address)
    without_pulled(equipped.hosts[0])
    yield way
    way.close()
    forget_clients()
    without_pulled(equipped.hosts[0])


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path_factory.mktemp("home")))


def without_pulled(host: FleetHost) -> None:
    client = host.daemon.client()
    for image in client.images.list():
        if any(PATH in name for name in (*image.tags, *image.attrs["RepoDigests"])):
            with suppress(docker.errors.APIError):
                image.remove(force=True)


def fleet_of(fleet: TestFleet, way: NarrowWay) -> Fleet:
    hosts = [
        {
            "name": host.name,
            "address": host.tls,
            "tls": {"certificates": str(fleet.certificates.client)},
            "bind": host.address,
        }
        for host in fleet.hosts
    ]
    registries = {
        "insecure": [way.host],
        "logins": [{"registry": way.host, "username": USER, "password": SECRET}],
    }
    image = f"{way.host}/{PATH}:v1"
    return Fleet.model_validate({"hosts": hosts, "registries": registries, "helper_image": image})


def as_seen(fleet: Fleet, position: int = 0, **changes: object) -> HostSnapshot:
    own = {"registries": fleet.registries, "architecture": ARCHITECTURES["x86_64"]}
    return describe(fleet.hosts[position]).model_copy(update=own | changes)


def test_a_survey_brings_it_with_the_account_of_its_registry(
    pushed: tuple[LocalRegistry, str], equipped: TestFleet, way: NarrowWay
) -> None:
    fleet = fleet_of(equipped, way)
    # On a busy machine a pull outlasts a survey, and the next one finds it.
    until(lambda: survey_host(fleet.hosts[0], fleet).helper_image)
    seen = survey_host(fleet.hosts[0], fleet)
    assert (seen.unreachable, seen.troubles) == ("", ())
    assert seen.helper_image == f"{way.host}/{PATH}@{pushed[1]}"
    assert f"{way.host}/{PATH}:v1" in seen.images
    way.close()
    offline = survey_host(fleet.hosts[0], fleet)
    assert (offline.troubles, offline.helper_image) == ((), seen.helper_image)


def test_many_at_once_pull_it_once(
    pushed: tuple[LocalRegistry, str], equipped: TestFleet, way: NarrowWay
) -> None:
    host, fleet = as_seen(fleet_of(equipped, way)), fleet_of(equipped, way)
    before, found = sum(pushed[0].fetched().values()), []

    def work() -> None:
        found.append(ensure_helper_image(host, fleet.helper_image, 60))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [f"{way.host}/{PATH}@{pushed[1]}"] * 4
    # Its configuration and its last layer.
    assert sum(pushed[0].fetched().values()) - before == 2


def test_who_cannot_wait_is_told_and_the_next_finds_it(equipped: TestFleet, way: NarrowWay) -> None:
    fleet = fleet_of(equipped, way)
    way.set_rate(2**20)
    with pytest.raises(Failure, match="was not there after") as caught:
        ensure_helper_image(as_seen(fleet), fleet.helper_image, 0.5)
    assert caught.value.cause is Cause.IMAGE_PULL_TIMEOUT
    assert "docker pull" in caught.value.suggestion
    way.set_rate(0)
    assert ensure_helper_image(as_seen(fleet), fleet.helper_image, 60)


def test_a_refused_account_and_a_registry_that_is_down_are_told(
    equipped: TestFleet, way: NarrowWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = fleet_of(equipped, way)
    monkeypatch.setenv(SECRET, "wrong-horse")
    (trouble,) = survey_host(fleet.hosts[0], fleet).troubles
    assert f"refused the login of {USER}" in trouble
    other = RegistryLogin(registry="elsewhere.example.com", username=USER, password=SECRET)
    anonymous = Registries(insecure=(way.host,), logins=(other,))
    with pytest.raises(Failure) as caught:
        ensure_helper_image(as_seen(fleet, registries=anonymous), fleet.helper_image, 60)
    assert caught.value.cause is Cause.REGISTRY_UNAUTHORIZED
    way.close()
    monkeypatch.setenv(SECRET, PASSWORD)
    seen = survey_host(fleet.hosts[0], fleet)
    assert not seen.unreachable
    assert "connection refused" in seen.troubles[0].lower()
