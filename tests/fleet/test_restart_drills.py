"""Docker is killed and started again under a model that serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import prefect_server, tiny_llama, workplace
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import a_spec, leaves_nothing, starting, within
from tests.fleet.commands import missing
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import HELPER, containers, write_fleet
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama", "workplace"]


@pytest.fixture(scope="module")
def mortal(equipped: TestFleet, lifecycle_image: str) -> Iterator[TestFleet]:
    """A host whose containers do not outlive its daemon."""
    assert equipped  # it has built the helper's image
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    with TestFleet(1, images=(lifecycle_image, HELPER), live_restore=False) as fleet:
        yield fleet


def status(place: Workplace) -> dict[str, Any]:
    (seen,) = place.json("status", place.named("tiny"))
    return dict(seen)


def test_a_model_serves_on_while_its_daemon_is_restarted(
    workplace: Workplace, equipped: TestFleet, lifecycle_image: str
) -> None:
    place, host = workplace, equipped.hosts[0]
    write_fleet(place, equipped, "tls")
    spec = a_spec(place, lifecycle_image)
    release = place.json("deploy", spec)["release"]
    (endpoint,) = (workload["endpoint"] for workload in release["workloads"])
    host.daemon.kill()
    try:
        assert httpx.get(f"{endpoint}/health").status_code == 200
        with within(30, "status without a daemon"):
            seen = status(place)
        assert (seen["state"], seen["alive"]) == ("running", False)
        assert f"Docker at tcp://{host.address}" in seen["observed"]
        with within(60, "a deploy without a daemon"):
            error = place.json("deploy", spec, code=8)["error"]
        assert error["cause"] == "runtime-unavailable"
        assert host.address in error["detail"]
    finally:
        host.daemon.start()
    assert status(place)["alive"]
    again = place.json("deploy", spec)
    assert (again["outcome"], again["release"]["id"]) == ("unchanged", release["id"])
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, equipped)


def test_a_model_that_ended_with_its_daemon_is_told_and_brought_back(
    workplace: Workplace, mortal: TestFleet, lifecycle_image: str
) -> None:
    place, host = workplace, mortal.hosts[0]
    write_fleet(place, mortal, "tls")
    spec = a_spec(place, lifecycle_image)
    first = place.json("deploy", spec)["release"]
    host.daemon.kill()
    host.daemon.start()
    seen = status(place)
    assert (seen["state"], seen["alive"]) == ("running", False)
    assert "the container exited" in seen["observed"]
    assert "exited with code" in seen["observed"]
    again = place.json("deploy", spec)["release"]
    assert again["id"] != first["id"]
    assert status(place)["alive"]
    assert len(containers(host)) == 1
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, mortal)


def test_an_engine_that_ends_with_its_daemon_while_it_starts(
    workplace: Workplace, mortal: TestFleet, lifecycle_image: str
) -> None:
    place, host = workplace, mortal.hosts[0]
    write_fleet(place, mortal, "tls")
    running = place.start("deploy", a_spec(place, lifecycle_image, "slow:120"), "--json")
    place.wait_until(starting(host), running)
    with within(100, "a start whose daemon is restarted"):
        host.daemon.kill()
        host.daemon.start()
        output, _ = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 6, output
    assert "engine-exited" in output
    assert "the container exited" in output
    leaves_nothing(place, mortal)
