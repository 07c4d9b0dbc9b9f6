"""One line tells how a daemon is reached."""

from __future__ import annotations

import pytest

from moorage.inventory.access import Access, current_address, parse_access

WAYS = [
    (Access(address="local"), "local", "local"),
    (Access(address="unix:///run/podman.sock"), "unix:///run/podman.sock", "local"),
    (Access(address="ssh://ops@gpu-1:2222"), "ssh://ops@gpu-1:2222", "gpu-1"),
    (
        Access(address="ssh://GPU-1/run/docker.sock", key="KEY", known_hosts="/etc/known hosts"),
        "ssh://GPU-1/run/docker.sock?key=KEY&known_hosts=%2Fetc%2Fknown+hosts",
        "gpu-1",
    ),
    (
        Access(address="tcp://[fd00::1]:2376", certificates="/etc/tls"),
        "tcp://[fd00::1]:2376?certificates=%2Fetc%2Ftls",
        "fd00::1",
    ),
]


@pytest.mark.parametrize(("access", "url", "machine"), WAYS)
def test_a_way_is_written_and_read(access: Access, url: str, machine: str) -> None:
    assert access.url == url
    assert parse_access(url) == access
    assert access.machine == machine


def test_ssh_takes_user_port_and_socket_from_the_address() -> None:
    access = Access(address="ssh://ops@gpu-1:2222/run/user/1000/docker.sock")
    assert (access.login, access.port) == ("ops@gpu-1", 2222)
    assert access.socket == "/run/user/1000/docker.sock"
    assert Access(address="ssh://gpu-1").socket == "/var/run/docker.sock"
    assert Access(address="ssh://gpu-1").login == "gpu-1"


@pytest.mark.parametrize(
    ("address", "login"),
    [
        ("ssh://GPU-Box", "GPU-Box"),
        ("ssh://Ops@GPU-Box:2222/run/docker.sock", "Ops@GPU-Box"),
        ("ssh://ops@[fd00::A]:22", "ops@fd00::A"),
    ],
)
def test_an_alias_of_the_ssh_configuration_keeps_its_capitals(address: str, login: str) -> None:
    assert Access(address=address).login == login


SSH = "ssh://deploy@10.0.0.11?key=OLD"


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        (SSH, "ssh://root@10.0.0.11:2222?key=NEW", True),
        (SSH, "ssh://deploy@10.0.0.11/var/run/docker.sock", True),
        (SSH, "ssh://deploy@10.0.0.12", True),
        (SSH, "ssh://deploy@10.0.0.11/run/user/1000/docker.sock", False),
        (SSH, "tcp://10.0.0.11:2376?certificates=/certs", False),
        ("tcp://a:2376?certificates=/old", "tcp://a:2376?certificates=/new", True),
        ("tcp://a:2376", "tcp://a:2377", False),
        ("local", "unix:///run/user/1000/docker.sock", False),
    ],
)
def test_a_daemon_is_reached_as_its_host_is_now(recorded: str, now: str, same: bool) -> None:
    assert current_address(recorded, now) == (now if same else recorded)
