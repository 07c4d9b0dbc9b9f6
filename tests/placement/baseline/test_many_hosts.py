from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.placement.baseline.place import messages, rank, terms_of
from tests.placement.baseline.builders import (
    a_claim,
    a_request,
    accelerator,
    host,
    seats,
    shares_of,
)

HALF = "--gpu-memory-utilization=0.5"
MP = "--distributed-executor-backend=mp"
EMBEDDING = {"categories": ("embedding",)}
PAIR = [0, 1]


def pairs(names: str) -> list[list[tuple[str, list[int]]]]:
    """One candidate of whole hosts with two accelerators."""
    return [[(name, PAIR) for name in names.split()]]


def test_whole_hosts_are_taken_until_they_hold_the_claim() -> None:
    hosts = [host(name, 100, 100) for name in "abcd"]
    ranking = rank(a_request(181), hosts)
    assert shares_of(ranking) == [[("a", (0, 1), (90, 90)), ("b", (0, 1), (90, 90))]]
    assert seats(a_request(360), *hosts) == pairs("a b")
    assert seats(a_request(361), *hosts) == pairs("a b c")
    assert seats(a_request(721), *hosts) == []


def test_shares_are_cut_to_bytes_one_by_one() -> None:
    hosts = [host(name, 19) for name in "ab"]
    assert seats(a_request(18, HALF), *hosts) == [[("a", [0]), ("b", [0])]]
    assert seats(a_request(19, HALF), *hosts) == []


def test_it_may_be_forbidden() -> None:
    request = a_request(181, across_hosts=False)
    assert seats(request, host("a", 100, 100), host("b", 100, 100)) == []


def test_every_accelerator_of_a_host_must_have_its_share_left() -> None:
    hosts = [
        host("a", 100, 100, claims=(a_claim(1, 51),)),
        host("b", 100, 100, claims=(a_claim(1, 50),)),
        host("c", 100, 100),
    ]
    assert seats(a_request(101, HALF), *hosts) == pairs("b c")


def test_hosts_without_the_ram_are_left_out_and_every_host_gives_its_ram() -> None:
    hosts = [
        host(name, 100, 100, ram_total=ram * GIB)
        for name, ram in zip("abc", (8, 7, 8), strict=True)
    ]
    ranking = rank(a_request(181, extended_kv_cache={"ram": 8 * GIB}), hosts)
    assert [(share.host, share.ram_bytes) for share in ranking.candidates[0].shares] == [
        ("a", 8 * GIB),
        ("c", 8 * GIB),
    ]


def test_hosts_of_one_combination_have_equally_many_accelerators() -> None:
    assert seats(a_request(200), host("a", 100, 100), host("b", 100)) == []


def test_larger_hosts_come_first() -> None:
    hosts = [host("a", 100), host("b", 100, 100), host("c", 100), host("d", 100, 100)]
    assert seats(a_request(181), *hosts) == pairs("b d")


def test_smaller_hosts_are_tried_when_the_larger_do_not_do() -> None:
    hosts = [host("a", 100), host("b", 10, 10), host("c", 100), host("d", 10, 10)]
    assert seats(a_request(150), *hosts) == [[("a", [0]), ("c", [0])]]


def test_the_number_of_accelerators_a_host_has_to_divide_the_model() -> None:
    hosts = [host(name, 100, 100, 100) for name in "ab"]
    assert seats(a_request(500, attention_heads=32), *hosts) == []
    assert len(seats(a_request(500, attention_heads=30), *hosts)) == 1


@pytest.mark.parametrize(
    ("line", "claim", "names"),
    [
        ("--tp=2 --pp=2", 10, "a b"),
        ("--tp=2 --pp=3", 10, "a b c"),
        ("--tp=2 --pp=2", 360, "a b"),
        ("--tp=2 --pp=2", 361, ""),
        ("--tp=5", 10, ""),
        ("--tp=2 --pp=5", 10, ""),
    ],
)
def test_the_wanted_number_is_met_exactly(line: str, claim: int, names: str) -> None:
    hosts = [host(name, 100, 100) for name in "abcd"]
    assert seats(a_request(claim, line), *hosts) == (pairs(names) if names else [])


@pytest.mark.parametrize(
    ("line", "claim", "names"),
    [
        (f"--tp=2 --pp=2 {MP}", 10, "a b"),
        (f"--dp=4 {MP}", 10, "a b"),
        (f"--dp=4 --dpl=2 {MP}", 10, "a b"),
        (f"--dp=4 --dpl=1 {MP}", 10, ""),
        ("--dp=4 --dpl=1", 10, "a b"),
        (f"--dpl=1 {MP}", 181, "a b"),
        (f"--dpl=2 {MP}", 181, ""),
        ("--dpl=2", 181, "a b"),
    ],
)
def test_natively_joined_hosts_need_a_layout(line: str, claim: int, names: str) -> None:
    hosts = [host(name, 100, 100) for name in "abcd"]
    assert seats(a_request(claim, line), *hosts) == (pairs(names) if names else [])


def test_without_a_share_all_memory_counts_and_nothing_is_taken() -> None:
    hosts = [host("a", 100, 100), host("b", 100, 100, claims=(a_claim(0, 99),))]
    request = a_request(400, extended_kv_cache={"ratio": 2.0}, **EMBEDDING)
    ranking = rank(request, hosts)
    assert shares_of(ranking) == [[("a", (0, 1), (0, 0)), ("b", (0, 1), (0, 0))]]
    assert {share.ram_bytes for share in ranking.candidates[0].shares} == {0}


def test_one_host_can_be_all_when_its_share_is_exactly_left() -> None:
    hosts = [
        host("a", 100, 100, claims=(a_claim(0, 50), a_claim(1, 50))),
        host("b", 100, 100, claims=(a_claim(0, 51),)),
    ]
    assert seats(a_request(100, HALF), *hosts) == pairs("a")


def test_each_type_gives_its_first_combination() -> None:
    hosts = [
        host("a", 100),
        host("r", 100, type="rocm"),
        host("s", 100, type="rocm"),
        host("b", 100),
    ]
    ranking = rank(a_request(150), hosts)
    assert [(item.accelerator_type, item.leader.host) for item in ranking.candidates] == [
        ("cuda", "a"),
        ("rocm", "r"),
    ]


def test_of_a_mixed_host_the_last_type_is_all_there_is() -> None:
    mixed = host("m", accelerators=(accelerator(0, 100, "rocm"), accelerator(0, 100, "cuda")))
    assert seats(a_request(150), mixed, host("b", 100)) == [[("m", [0]), ("b", [0])]]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {"args": (HALF,)},
            [
                "The best combination is a, b, c and 1 more with 40.00 GiB; 1 other hosts of that "
                "size lack free accelerators."
            ],
        ),
        (EMBEDDING, ["The largest combination has 100.00 GiB."]),
        (
            {"args": (HALF, "--dpl=2", MP), "claim": 35 * GIB},
            [
                "2 local ranks are requested, the hosts take 1, 1, 1, 1",
                "The best combination is a, b, c and 1 more with 40.00 GiB; 1 other hosts of that "
                "size lack free accelerators.",
            ],
        ),
        ({"extended_kv_cache": {"ram": 2000 * GIB}}, []),
    ],
    ids=["share", "no-share", "topology", "no-ram"],
)
def test_the_best_combination_is_reported(changes: dict[str, Any], lines: list[str]) -> None:
    hosts = [host(name, 20 * GIB) for name in "abcd"]
    hosts.append(host("e", 20 * GIB, claims=(a_claim(0, 11 * GIB),)))
    request = a_request(**{"claim": 500 * GIB, **changes})
    header = messages(terms_of(request), [])
    *reasons, last = rank(request, hosts).messages[len(header) :]
    assert reasons == lines
    assert "No combination of hosts" in last


def test_the_best_combination_is_the_one_with_the_most_memory() -> None:
    large, small = (20 * GIB, 20 * GIB), (10 * GIB,)
    hosts = [host("a", *large), host("b", *small), host("c", *large), host("d", *small)]
    assert rank(a_request(500 * GIB), hosts).messages[-2] == (
        "The best combination is a, c with 72.00 GiB."
    )


def test_hosts_that_were_not_looked_at_lack_nothing() -> None:
    """With four accelerators wanted, nobody looks further than the third host with two."""
    hosts = [host(name, 20 * GIB, 20 * GIB) for name in "bcde"]
    hosts.insert(0, host("a", 20 * GIB, 20 * GIB, claims=(a_claim(0, 11 * GIB),)))
    request = a_request(500 * GIB, HALF, accelerators=4)
    assert rank(request, hosts).messages[-2] == (
        "The best combination is b, c, d with 60.00 GiB; 1 other hosts of that size lack free"
        " accelerators."
    )
