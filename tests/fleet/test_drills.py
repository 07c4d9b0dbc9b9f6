"""What befalls hosts while a model is deployed to them: one clear cause, nothing left, no hang."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import containers, write_fleet
from tests.hub.faults import Fault
from tests.hub.server import Hub

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

END_SECONDS = 240
"""By then a deploy has ended, whatever befell its host; each test bounds it more closely."""


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet) -> Iterator[Workplace]:
    write_fleet(workplace, equipped, "tls")
    yield workplace
    for host in equipped.hosts:
        for name in containers(host):
            host.daemon.client().containers.get(name).remove(force=True)


def a_spec(place: Workplace, image: str, behaviour: str = "ok", **fields: Any) -> str:
    """A model for the first host alone, unless it says otherwise."""
    return str(place.spec(**pinned(image, behaviour) | fields))


def pinned(image: str, behaviour: str = "ok") -> dict[str, Any]:
    placement = {"accelerators": 0, "ram": "64MiB", "host_labels": {"host": "w1"}}
    return {"engine": container_engine(image, behaviour), "placement": placement}


def befalls(
    place: Workplace, spec: str, when: Callable[[], bool], what: Callable[[], None]
) -> subprocess.Popen[str]:
    """Deploy, and let something happen once something else has."""
    running = place.start("deploy", spec, "--json")
    place.wait_until(lambda: when() or running.poll() is not None)
    what()
    return running


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    said, errors = running.communicate(timeout=END_SECONDS)
    return running.returncode, said + errors


def starting(host: FleetHost) -> Callable[[], bool]:
    return lambda: bool(containers(host))


def deploys_again_and_leaves_nothing(place: Workplace, fleet: TestFleet, image: str) -> None:
    """The next deploy cleans up after the one that something befell, as reconciling would."""
    place.run("deploy", a_spec(place, image))
    here = [name for host in fleet.hosts for name in containers(host)]
    assert len(here) == 1
    assert {claim.release for claim in place.claims()} == {place.releases()[0].id}
    place.run("retire", place.named("tiny"))
    assert place.is_clean()
    assert [name for host in fleet.hosts for name in containers(host)] == []


def test_a_cable_that_is_cut_for_a_moment_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:15")
    running = befalls(place, spec, starting(host), host.link.cut)
    time.sleep(4)
    host.link.mend()
    code, said = ended(running)
    assert code == 0, said
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_cable_that_stays_cut_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:120")
    running = befalls(place, spec, starting(host), host.link.cut)
    try:
        code, said = ended(running)
    finally:
        host.link.mend()
    assert code == 8, said
    assert "runtime-unavailable" in said
    assert host.address in said
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_daemon_that_is_restarted_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:15")
    running = befalls(place, spec, starting(host), host.daemon.kill)
    host.daemon.start()
    code, said = ended(running)
    assert code == 0, said
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_daemon_that_is_frozen_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:120")
    running = befalls(place, spec, starting(host), host.daemon.freeze)
    try:
        code, said = ended(running)
    finally:
        host.daemon.thaw()
    assert code == 8, said
    assert "runtime-unavailable" in said
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_container_that_is_killed_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]

    def kill() -> None:
        host.daemon.client().containers.get(containers(host)[0]).kill()

    spec = a_spec(place, lifecycle_image, "slow:120")
    code, said = ended(befalls(place, spec, starting(host), kill))
    assert code == 6, said
    assert "exit code 137" in said
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_host_that_is_gone_is_passed_over_for_another(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host, anywhere = equipped.hosts[0], {"accelerators": 0, "ram": "64MiB"}
    host.link.cut()
    try:
        spec = a_spec(place, lifecycle_image, placement=anywhere)
        release = place.json("deploy", spec)["release"]
        assert release["workloads"][0]["host"] != host.name
        refused = place.run(
            "plan", place.spec("other", **pinned(lifecycle_image)), "--json", code=3
        )
        assert "unreachable" in refused.stdout
        place.run("retire", place.named("tiny"))
    finally:
        host.link.mend()
    assert place.is_clean()


def test_a_cable_that_is_cut_while_weights_are_brought(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    weights, host = "model.safetensors", equipped.hosts[0]
    folder = place.model
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    with Hub({"acme/tiny": files}, address=equipped.network.address) as hub:
        place.environment["HF_ENDPOINT"] = hub.url
        spec = a_spec(place, lifecycle_image, source="hf://acme/tiny")
        hub.fail(weights, Fault(pause=0.15))

        def fetching() -> bool:
            return any(host.daemon.client().containers.list(filters={"label": "moorage.helper"}))

        running = befalls(place, spec, lambda: fetching() and weights_asked(hub), host.link.cut)
        mended = threading.Timer(10, host.link.mend)
        mended.start()
        code, said = ended(running)
        mended.join()
        assert code == 0, said
        place.run("retire", place.named("tiny"))
    assert place.is_clean()


def weights_asked(hub: Hub) -> bool:
    return any(seen.host and seen.file == "model.safetensors" for seen in hub.requests)


def test_other_hosts_are_not_concerned(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    first, second = equipped.hosts[:2]
    second.daemon.freeze()
    try:
        began = time.monotonic()
        place.run("deploy", a_spec(place, lifecycle_image))
        assert time.monotonic() - began < 120
        assert containers(first)
    finally:
        second.daemon.thaw()
    place.run("retire", place.named("tiny"))
    assert place.is_clean()
