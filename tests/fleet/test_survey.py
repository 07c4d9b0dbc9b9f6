"""Remote hosts are looked at through their Docker alone; one that is gone holds up nobody."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.adapters.docker.helper_job import HelperJob, run_helper
from moorage.adapters.hosts.survey import survey_host
from moorage.adapters.sources.store import Manifest
from moorage.adapters.ssh import TUNNELS
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.inventory.model_store import MANIFEST
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.vendors import HANDED, handed_to
from moorage.models.source import WeightSummary
from moorage.spec import RuntimeName
from tasks import survey
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import HELPER

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

Way = Callable[[FleetHost], dict[str, object]]


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch, fleet: TestFleet, tmp_path: Path) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.setenv("FLEET_KEY", fleet.key.read_text())
    forget_clients()
    TUNNELS.close()


def over_ssh(fleet: TestFleet, **more: object) -> Fleet:
    return described(
        fleet,
        lambda host: {
            "address": f"{host.ssh}{host.daemon.socket}",
            "ssh": {"key": "FLEET_KEY", "known_hosts": str(fleet.known_hosts)},
        },
        **more,
    )


def over_tls(fleet: TestFleet, **more: object) -> Fleet:
    tls = {"certificates": str(fleet.certificates.client)}
    return described(fleet, lambda host: {"address": host.tls, "tls": tls}, **more)


def described(fleet: TestFleet, way: Way, **more: object) -> Fleet:
    def one(host: FleetHost) -> dict[str, object]:
        return {"name": host.name, "bind": host.address, "ports": "18000-18039", **way(host)}

    return Fleet.model_validate(
        {"hosts": [one(host) for host in fleet.hosts], "helper_image": HELPER, **more}
    )


@pytest.mark.parametrize("way", [over_ssh, over_tls])
def test_a_remote_host_is_seen_as_it_is(equipped: TestFleet, way: Callable[..., Fleet]) -> None:
    fleet = way(equipped)
    seen = survey_host(fleet.hosts[0], fleet)
    assert (seen.unreachable, seen.troubles) == ("", ())
    assert seen.runtimes == (RuntimeName.DOCKER,)
    assert seen.cpus == psutil.cpu_count()
    assert seen.ram_total == psutil.virtual_memory().total
    assert 0 < seen.ram_free < seen.ram_total
    assert {2376, 22} <= set(seen.ports_in_use)
    assert HELPER in seen.images
    assert seen.accelerators == ()
    assert not equipped.hosts[0].daemon.client().containers.list(all=True)


def test_complete_models_of_the_hosts_store_are_listed(equipped: TestFleet, tmp_path: Path) -> None:
    for revision, name in (("c0ffee", "c0ffee"), ("1", "1.partial")):
        folder = tmp_path / "store" / "models" / "org--tiny" / name
        folder.mkdir(parents=True)
        weights = WeightSummary(family="safetensors", bytes=1)
        manifest = Manifest(
            source="hf://org/tiny", revision=revision, files=(), skipped=(), weights=weights
        )
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1))
    host = over_tls(equipped).hosts[0]
    fleet = Fleet(helper_image=HELPER)
    there = survey_host(host.model_copy(update={"store": str(tmp_path / "store")}), fleet)
    assert there.models == {"hf://org/tiny@c0ffee"}
    none = survey_host(host.model_copy(update={"store": str(tmp_path / "none")}), fleet)
    assert (none.models, none.troubles) == (frozenset(), ())
    assert not (tmp_path / "none").exists()


def test_without_the_helper_image_the_daemon_tells_what_it_knows(equipped: TestFleet) -> None:
    fleet = over_tls(equipped, helper_image="127.0.0.1:9/none:1")
    seen = survey_host(fleet.hosts[0], fleet)
    assert seen.unreachable == ""
    assert seen.cpus == len(os.sched_getaffinity(0))
    assert "the probe did not run" in seen.troubles[0]


@pytest.mark.parametrize("vendor", sorted(HANDED))
def test_what_is_not_there_cannot_be_handed_over(equipped: TestFleet, vendor: str) -> None:
    access = over_tls(equipped).hosts[0].access
    with pytest.raises(Failure) as caught:
        run_helper(access, HelperJob(HELPER, ("true",), "probe", 20, handed_to(vendor, 1)))
    assert caught.value.cause == Cause.ACCELERATOR_RUNTIME_MISSING
    assert not equipped.hosts[0].daemon.client().containers.list(all=True)


def test_a_host_that_is_gone_does_not_delay_the_others(
    equipped: TestFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "HOST_SECONDS", 8.0)
    equipped.hosts[1].link.cut()
    equipped.hosts[2].daemon.freeze()
    try:
        began = time.monotonic()
        snapshot = asyncio.run(survey.take_snapshot(over_tls(equipped)))
        assert time.monotonic() - began < 10
    finally:
        equipped.hosts[1].link.mend()
        equipped.hosts[2].daemon.thaw()
    seen: dict[str, HostSnapshot] = {host.name: host for host in snapshot.hosts}
    assert seen["w1"].unreachable == ""
    # The kernel has given the neighbour up, or the connection was waited for.
    assert re.search("onnect|No route", seen["w2"].unreachable)
    assert "timed out" in seen["w3"].unreachable
