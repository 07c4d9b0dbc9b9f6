"""What befalls hosts while a model is deployed to them: one clear cause, nothing left, no hang."""

from __future__ import annotations

import threading
import time

import pytest

from tests.e2e.conftest import prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import (
    a_spec,
    befalls,
    deploys_again_and_leaves_nothing,
    ended,
    leaves_nothing,
    pinned,
    starting,
)
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import containers
from tests.hub.faults import Fault
from tests.hub.server import Hub

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]


def test_a_cable_that_is_cut_for_a_moment_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:15")
    running = befalls(place, spec, starting(host), host.link.cut)
    time.sleep(4)
    host.link.mend()
    code, output = ended(running)
    assert code == 0, output
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_cable_that_stays_cut_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:120")
    running = befalls(place, spec, starting(host), host.link.cut)
    try:
        code, output = ended(running)
    finally:
        host.link.mend()
    assert code == 8, output
    assert "runtime-unavailable" in output
    assert host.address in output
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_what_is_left_on_a_host_that_is_cut_off_is_told_and_does_not_keep_the_model_away(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host, name = equipped.hosts[0], place.named("tiny")
    spec = a_spec(place, lifecycle_image, "slow:120", readiness={"deadlines": {"load_seconds": 5}})
    running = befalls(place, spec, starting(host), host.link.cut)
    try:
        code, output = ended(running)
        assert code in (6, 8), output
        (seen,) = place.json("status", name)
        assert not seen["alive"]
        assert "left behind on w1" in seen["observed"]
        assert host.address in seen["observed"]
        assert {claim.host for claim in place.claims()} == {"w1"}
        refused = place.run("retire", name, code=8)
        assert "r0-leader on w1 could not be cleaned up" in refused.stdout + refused.stderr
        place.run("deploy", place.spec(**pinned(lifecycle_image, host="w2")))
        assert {claim.host for claim in place.claims()} == {"w1", "w2"}
    finally:
        host.link.mend()
    serving, left = place.json("status", name)
    assert (serving["state"], serving["alive"]) == ("running", True)
    assert (left["state"], left["alive"]) == ("error", False)
    assert "left behind on w1: the container is running" in left["observed"]
    place.run("retire", name)
    leaves_nothing(place, equipped)


def test_a_daemon_that_is_restarted_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:15")
    running = befalls(place, spec, starting(host), host.daemon.kill)
    host.daemon.start()
    code, output = ended(running)
    assert code == 0, output
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_daemon_that_is_frozen_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]
    spec = a_spec(place, lifecycle_image, "slow:120")
    running = befalls(place, spec, starting(host), host.daemon.freeze)
    try:
        code, output = ended(running)
    finally:
        host.daemon.thaw()
    assert code == 8, output
    assert "runtime-unavailable" in output
    deploys_again_and_leaves_nothing(place, equipped, lifecycle_image)


def test_a_container_that_is_killed_while_the_engine_starts(
    place: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    host = equipped.hosts[0]

    def kill() -> None:
        host.daemon.client().containers.get(containers(host)[0]).kill()

    spec = a_spec(place, lifecycle_image, "slow:120")
    code, output = ended(befalls(place, spec, starting(host), kill))
    assert code == 6, output
    assert "code 137" in output
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
        place.environment["MOORAGE_HUB_ENDPOINT"] = hub.url
        spec = a_spec(place, lifecycle_image, source="hf://acme/tiny")
        hub.fail(weights, Fault(pause=0.15))

        def fetching() -> bool:
            return any(host.daemon.client().containers.list(filters={"label": "moorage.helper"}))

        running = befalls(place, spec, lambda: fetching() and weights_asked(hub), host.link.cut)
        mended = threading.Timer(10, host.link.mend)
        mended.start()
        code, output = ended(running)
        mended.join()
        assert code == 0, output
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
