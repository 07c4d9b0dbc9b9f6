"""Docker daemons are reached by socket, TLS and SSH, and each fault has a cause of its own."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from moorage.adapters.docker.client import connect, forget_clients
from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.ssh import TUNNELS, Tunnel
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.keys import Certificates, make_ssh_key
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.fleet]


@pytest.fixture(autouse=True)
def again(monkeypatch: pytest.MonkeyPatch, fleet: TestFleet) -> Iterator[None]:
    monkeypatch.setenv("FLEET_KEY", fleet.key.read_text())
    yield
    forget_clients()
    TUNNELS.close()


def over_ssh(fleet: TestFleet, host: FleetHost, **changes: str) -> Access:
    given = {"key": "FLEET_KEY", "known_hosts": str(fleet.known_hosts)}
    return Access(address=f"{host.ssh}{host.daemon.socket}", **given | changes)


def over_tls(fleet: TestFleet, host: FleetHost) -> Access:
    return Access(address=host.tls, certificates=str(fleet.certificates.client))


def test_each_way_leads_to_its_own_daemon(
    fleet: TestFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ssl/certs/ca-certificates.crt")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    for host in fleet.hosts:
        ways = (Access(address=host.unix), over_tls(fleet, host), over_ssh(fleet, host))
        assert [connect(way).info()["Name"] for way in ways] == [host.name] * 3


def test_many_threads_share_one_ssh_connection(fleet: TestFleet) -> None:
    access, names = over_ssh(fleet, fleet.hosts[0]), []
    asking = [
        threading.Thread(target=lambda: names.append(connect(access).info()["Name"]))
        for _ in range(24)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert names == ["w1"] * 24
    running = subprocess.run(["pgrep", "-fc", "moorage-ssh-"], capture_output=True, check=False)
    assert running.stdout.strip() == b"1"


@pytest.mark.parametrize(
    ("changes", "cause", "output"),
    [
        ({"key": "OTHER_KEY"}, Cause.HOST_UNAUTHORIZED, "Permission denied"),
        ({"key": "NO_KEY"}, Cause.HOST_UNAUTHORIZED, "key in secret NO_KEY cannot be read"),
        ({"known_hosts": "/dev/null"}, Cause.HOST_UNTRUSTED, "verification failed"),
    ],
)
def test_a_refused_login_says_why(
    fleet: TestFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    cause: Cause,
    output: str,
) -> None:
    monkeypatch.setenv("OTHER_KEY", make_ssh_key(tmp_path / "other").read_text())
    monkeypatch.setenv("NO_KEY", "no key at all")
    with pytest.raises(Failure) as caught:
        connect(over_ssh(fleet, fleet.hosts[0], **changes))
    assert caught.value.cause == cause
    assert output in caught.value.detail


def test_a_host_that_shows_another_key_is_not_trusted(fleet: TestFleet, tmp_path: Path) -> None:
    first, second = fleet.hosts[:2]
    known = tmp_path / "known"
    known.write_text(second.sshd.known_host.replace(second.address, first.address))
    with pytest.raises(Failure) as caught:
        connect(over_ssh(fleet, first, known_hosts=str(known)))
    assert caught.value.cause == Cause.HOST_UNTRUSTED
    assert "another key" in caught.value.suggestion


def test_a_socket_that_is_not_there(fleet: TestFleet) -> None:
    access = over_ssh(fleet, fleet.hosts[0])
    with pytest.raises(Failure) as caught:
        connect(access.model_copy(update={"address": f"{fleet.hosts[0].ssh}/run/none.sock"}))
    assert caught.value.cause == Cause.RUNTIME_UNAVAILABLE
    assert "/run/none.sock is not there" in caught.value.detail


def test_a_cut_cable_ends_what_goes_over_ssh_and_tls(fleet: TestFleet) -> None:
    host = fleet.hosts[1]
    tunnelled, secured = over_ssh(fleet, host), over_tls(fleet, host)
    connect(tunnelled).ping()
    connect(secured).ping()
    host.link.cut()
    try:
        began = time.monotonic()
        for access in (tunnelled, secured):
            with pytest.raises((requests.exceptions.RequestException, Failure)):
                connect(access, 5).ping()
        assert time.monotonic() - began < 30
    finally:
        host.link.mend()
    for access in (secured, tunnelled):
        until(lambda: answers(access))  # noqa: B023  (it is called at once)


def answers(access: Access) -> bool:
    """Whether a new connection gets through; the old ones may still be ending."""
    forget_clients()
    with suppress(requests.exceptions.RequestException, Failure):
        return connect(access).ping()
    return False


def test_a_tunnel_ends_with_the_process_that_made_it(fleet: TestFleet) -> None:
    tunnel = Tunnel(over_ssh(fleet, fleet.hosts[0]))
    assert tunnel.is_open
    assert tunnel._process.stdin
    tunnel._process.stdin.close()  # as when this process is killed
    tunnel._process.wait(10)
    assert not tunnel.is_open
    tunnel.close()


@pytest.mark.parametrize(
    ("certificates", "cause", "suggestion"),
    [
        ("", Cause.HOST_UNAUTHORIZED, "under `tls`"),
        ("other authority", Cause.HOST_UNTRUSTED, "ca.pem"),
        ("other client", Cause.HOST_UNAUTHORIZED, "cert.pem"),
    ],
)
def test_a_refused_certificate_says_why(
    fleet: TestFleet, tmp_path: Path, certificates: str, cause: Cause, suggestion: str
) -> None:
    folder = Certificates(tmp_path).client if certificates else ""
    if certificates == "other client":
        shutil.copy(fleet.certificates.client / "ca.pem", folder)
    access = Access(address=fleet.hosts[0].tls, certificates=str(folder))
    with pytest.raises(Failure) as caught:
        DockerRuntime(access.url).version()
    assert caught.value.cause == cause
    assert suggestion in caught.value.suggestion
