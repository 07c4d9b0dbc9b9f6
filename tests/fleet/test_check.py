"""`fleet check` names what is wrong with a host, and finds nothing where all is well."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.adapters.hosts.fleet_check import check_fleet
from moorage.adapters.ssh import TUNNELS
from moorage.inventory.checks import Check, HostChecks
from moorage.inventory.fleet import Fleet
from tests.fleet.commands import run
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.keys import Certificates, make_ssh_key
from tests.fleet.sites import HELPER

pytestmark = [pytest.mark.docker, pytest.mark.fleet]

ALL = [
    *("reachability", "Docker", "clock", "helper image", "accelerators", "disk of images", "bind"),
    "ports between hosts",
]


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch, fleet: TestFleet, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.setenv("FLEET_KEY", fleet.key.read_text())
    yield
    forget_clients()
    TUNNELS.close()


def over_tls(fleet: TestFleet, host: FleetHost, certificates: Path | None = None) -> dict[str, Any]:
    folder = certificates or fleet.certificates.client
    return {"address": host.tls, "tls": {"certificates": str(folder)}}


def over_ssh(fleet: TestFleet, host: FleetHost, **changes: str) -> dict[str, Any]:
    way = {"key": "FLEET_KEY", "known_hosts": str(fleet.known_hosts)} | changes
    return {"address": f"{host.ssh}{host.daemon.socket}", "ssh": way}


def checked(*hosts: tuple[FleetHost, dict[str, Any]], **more: object) -> tuple[HostChecks, ...]:
    written = [
        {"name": host.name, "bind": host.address, "ports": "18000-18039", **way}
        for host, way in hosts
    ]
    return check_fleet(Fleet.model_validate({"hosts": written, "helper_image": HELPER, **more}))


def finding(host: HostChecks, name: str) -> Check:
    return next(check for check in host.checks if check.name == name)


def test_a_fleet_that_is_well(equipped: TestFleet) -> None:
    first, second, third = equipped.hosts
    seen = checked(
        (first, over_tls(equipped, first)),
        (second, over_ssh(equipped, second)),
        (third, over_tls(equipped, third)),
    )
    for host in seen:
        assert [check.name for check in host.checks] == ALL
        # The disk may be nearly full where this test runs; the rest may not be wrong.
        assert {check.name for check in host.checks if check.broken} <= {"disk of images"}
    assert finding(seen[0], "ports between hosts").found == "reaches w2, w3"
    assert finding(seen[1], "reachability").found == "as w2, through ssh"
    for each in equipped.hosts:
        assert each.daemon.client().containers.list(all=True) == []


def test_a_wrong_host_a_bad_key_and_a_wrong_authority_are_each_named(
    fleet: TestFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = fleet.hosts
    monkeypatch.setenv("OTHER_KEY", make_ssh_key(tmp_path / "other").read_text())
    lines = fleet.known_hosts.read_text().splitlines()
    swapped = [
        line.replace(first.address, second.address) for line in lines if first.address in line
    ]
    (tmp_path / "known").write_text("\n".join(swapped) + "\n")
    authority = Certificates(tmp_path / "tls").client
    seen = checked(
        (first, over_ssh(fleet, first, key="OTHER_KEY")),
        (second, over_ssh(fleet, second, known_hosts=str(tmp_path / "known"))),
        (third, over_tls(fleet, third, authority)),
    )
    output = [(host.checks[0].found, host.checks[0].fix) for host in seen]
    for host in seen:
        assert not host.well
        assert [check.name for check in host.checks] == ["reachability"]
    (bad_key, wrong_host, wrong_authority) = output
    assert "refused the login" in bad_key[0]
    assert "Permission denied" in bad_key[0]
    assert "authorized_keys" in bad_key[1]
    assert "identity of the host has changed" in wrong_host[0]
    assert "shows another key" in wrong_host[1]
    assert "identity of the host has changed" in wrong_authority[0]
    assert "ca.pem" in wrong_authority[1]


@pytest.mark.parametrize(
    ("address", "found", "fix"),
    [
        ("tcp://{ip}:2399", "Connection refused", "nothing listens there"),
        ("tcp://no-such-host.invalid:2376", "no-such-host.invalid", "No machine has that name"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_apart(
    fleet: TestFleet, address: str, found: str, fix: str
) -> None:
    host = fleet.hosts[0]
    (seen,) = checked((host, over_tls(fleet, host) | {"address": address.format(ip=host.address)}))
    assert found in seen.checks[0].found
    assert "ConnectionPool" not in seen.checks[0].found
    assert fix in seen.checks[0].fix


def test_a_cut_link_is_named_and_the_others_are_checked(equipped: TestFleet) -> None:
    cut, *others = equipped.hosts
    cut.link.cut()
    try:
        began = time.monotonic()
        gone, *rest = checked(*((host, over_tls(equipped, host)) for host in equipped.hosts))
        assert time.monotonic() - began < 60
    finally:
        cut.link.mend()
    assert "timed out" in gone.checks[0].found
    assert "firewall" in gone.checks[0].fix
    assert [finding(host, "ports between hosts").found for host in rest] == [
        "reaches w3",
        "reaches w2",
    ]
    assert len(others) == 2


def test_hosts_that_do_not_reach_each_other_say_so(equipped: TestFleet) -> None:
    first, second, third = equipped.hosts
    route = ("ip", "-n", first.link.namespace, "route")
    run(*route, "add", "unreachable", second.address)
    try:
        one, two, three = checked(*((host, over_tls(equipped, host)) for host in equipped.hosts))
    finally:
        run(*route, "del", "unreachable", second.address)
    assert "does not reach w2: " in finding(one, "ports between hosts").found
    assert "does not reach w1: timed out" in finding(two, "ports between hosts").found
    assert not finding(three, "ports between hosts").broken
    assert not any(finding(host, "bind").broken for host in (one, two, three))
    assert third.daemon.client().containers.list(all=True) == []


def test_a_bind_that_is_no_address_of_the_host_is_named(equipped: TestFleet) -> None:
    first, second, _ = equipped.hosts
    (seen,) = checked((first, over_tls(equipped, first) | {"bind": second.address}))
    assert "cannot assign requested address" in finding(seen, "bind").found
    assert first.daemon.client().containers.list(all=True) == []


def test_without_the_helper_image_it_says_how_to_bring_it(equipped: TestFleet) -> None:
    host = equipped.hosts[0]
    (seen,) = checked((host, over_tls(equipped, host)), helper_image="127.0.0.1:9/none:1")
    assert "docker save 127.0.0.1:9/none:1" in finding(seen, "helper image").fix
    assert not seen.well
