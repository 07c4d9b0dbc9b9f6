from __future__ import annotations

from moorage.engines.vllm.ray_cluster import RayPorts, head_address, ray_start

PORTS = RayPorts(first=30000, last=30099)


def test_the_leader_opens_the_cluster_and_others_join_it() -> None:
    head = ray_start(PORTS, "10.0.0.1", "10.0.0.1", leads=True)
    other = ray_start(PORTS, "10.0.0.2", "10.0.0.1", leads=False)
    assert head[-4:] == (
        "--head",
        "--port=30000",
        "--dashboard-host=10.0.0.1",
        "--dashboard-port=30002",
    )
    assert other[-2:] == ("--node-ip-address=10.0.0.2", "--address=10.0.0.1:30000")
    assert head[:13] == other[:13]


def test_an_address_of_ipv6_is_told_from_its_port() -> None:
    other = ray_start(PORTS, "fd00::2", "fd00::1", leads=False)
    assert other[-2:] == ("--node-ip-address=fd00::2", "--address=[fd00::1]:30000")
    assert head_address("10.0.0.1", 30000) == "10.0.0.1:30000"


def test_every_port_comes_out_of_the_range() -> None:
    words = ray_start(PORTS, "10.0.0.1", "10.0.0.1", leads=True)
    ports = [int(word.partition("=")[2]) for word in words if "-port=" in word]
    assert len(ports) == len(set(ports))
    assert all(PORTS.first <= port <= PORTS.last for port in ports)
