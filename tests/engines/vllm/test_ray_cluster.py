from __future__ import annotations

import pytest

from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.ray_cluster import ray_start, spanning_warnings
from tests.engines.vllm.requests import RAY, a_request


def request(position: int, net: str = "10.0.0.") -> LaunchRequest:
    found = a_request(counts=(1, 1), position=position, seat={"links": RAY})
    peers = [
        one.model_copy(update={"host": one.host.model_copy(update={"bind": f"{net}{at}"})})
        for at, one in enumerate(found.peers, 1)
    ]
    return found.model_copy(update={"peers": tuple(peers)})


def test_the_leader_opens_the_cluster_and_others_join_it() -> None:
    head, other = ray_start(request(0)), ray_start(request(1))
    assert head[-4:] == (
        "--head",
        "--port=41000",
        "--dashboard-host=10.0.0.1",
        "--dashboard-port=41002",
    )
    assert other[-2:] == ("--node-ip-address=10.0.0.2", "--address=10.0.0.1:41000")
    assert head[:13] == other[:13]


def test_an_address_of_ipv6_is_told_from_its_port() -> None:
    words = ray_start(request(1, "fd00::"))
    assert words[-2:] == ("--node-ip-address=fd00::2", "--address=[fd00::1]:41000")


def test_every_port_comes_out_of_the_range() -> None:
    ports = [int(word.partition("=")[2]) for word in ray_start(request(0)) if "-port=" in word]
    assert len(ports) == len(set(ports))
    assert all(41000 <= port <= 41030 for port in ports)


@pytest.mark.parametrize(
    ("counts", "words", "position", "told"),
    [
        ((4, 2), (), 0, True),
        ((4, 2), (), 1, False),
        ((4, 2), ("-pp 6",), 0, False),
        ((4, 4), (), 0, False),
    ],
)
def test_unequal_hosts_that_share_no_layers_are_told_once(
    counts: tuple[int, ...], words: tuple[str, ...], position: int, told: bool
) -> None:
    found = a_request(*words, counts=counts, position=position, seat={"links": RAY, "pipeline": 6})
    line = "hosts of 4, 2 accelerators share no layers: each accelerator is a stage"
    assert (line in spanning_warnings(found)) is told
