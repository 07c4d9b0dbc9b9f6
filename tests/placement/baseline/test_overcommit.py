from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.place import rank
from moorage.placement.placement import Ranking
from tests.placement.baseline.builders import a_claim, a_request, host, named, shares_of

EACH = {"accelerators_per_replica": 1}
HALF = "--gpu-memory-utilization=0.5"


def flags(ranking: Ranking) -> list[bool]:
    return [item.overcommit for item in ranking.candidates]


@pytest.mark.parametrize(
    ("claim", "reserve", "overcommit"),
    [(100, 0, False), (101, 0, True), (100, 50, False), (100, 51, True)],
)
def test_too_small_a_share_or_too_little_left_is_overcommit(
    claim: int, reserve: int, overcommit: bool
) -> None:
    request = a_request(claim, HALF, accelerators=named("a:0", "a:1"))
    ranking = rank(request, [host("a", 100, 100, accelerator_reserve=reserve)])
    assert flags(ranking) == [overcommit]
    assert bool(ranking.messages) is overcommit


def test_one_accelerator_without_its_share_is_enough_to_overcommit() -> None:
    request = a_request(10, HALF, accelerators=named("a:0", "b:0"))
    hosts = [host("a", 100), host("b", 100, claims=(a_claim(0, 51),))]
    assert flags(rank(request, hosts)) == [True]


def test_what_fits_goes_before_what_does_not() -> None:
    request = a_request(50, HALF, accelerators=named("a:0", "b:0", "c:0"), **EACH)
    hosts = [host("a", 100), host("b", 99), host("c", 100)]
    ranking = rank(request, hosts)
    assert [item.leader.host for item in ranking.candidates] == ["a", "c"]
    assert flags(ranking) == [False, False]


@pytest.mark.parametrize(
    ("hosts", "best"),
    [
        ([host("a", 100), host("b", 120), host("c", 110)], "b"),
        ([host("a", 100), host("b", 100)], "b"),
        ([host("a", 200, claims=(a_claim(0, 110),)), host("b", 100)], "b"),
    ],
    ids=["largest", "later", "most-left"],
)
def test_the_one_with_the_most_left_is_overcommitted_the_later_of_equals(
    hosts: list[HostSnapshot], best: str
) -> None:
    chosen = named(*(f"{item.name}:0" for item in hosts))
    request = a_request(500, HALF, accelerators=chosen, accelerators_per_replica=1)
    ranking = rank(request, hosts)
    assert [item.leader.host for item in ranking.candidates] == [best]
    assert flags(ranking) == [True]


@pytest.mark.parametrize(("replicas", "candidates"), [(1, 1), (2, 0)])
def test_only_a_single_replica_is_overcommitted(replicas: int, candidates: int) -> None:
    request = a_request(500, accelerators=named("a:0"), replicas=replicas)
    ranking = rank(request, [host("a", 100)])
    assert len(ranking.candidates) == candidates
    assert ("single replica only" in ranking.messages[-1]) is (not candidates)


def test_several_replicas_are_placed_where_they_fit() -> None:
    request = a_request(10, accelerators=named("a:0"), replicas=2)
    assert flags(rank(request, [host("a", 100)])) == [False]


def test_a_claim_that_is_split_unevenly_falls_short_by_the_cut() -> None:
    request = a_request(100, accelerators=named("a:0", "a:1", "a:2"), categories=("embedding",))
    ranking = rank(request, [host("a", 500, 500, 500)])
    assert shares_of(ranking) == [[("a", (0, 1, 2), (33, 33, 33))]]
    assert flags(ranking) == [True]


def test_a_cache_is_never_overcommitted() -> None:
    request = a_request(10, accelerators=named("a:0"), extended_kv_cache={"ram": 900 * GIB})
    assert flags(rank(request, [host("a", 100, ram_total=GIB)])) == [False]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                "The selected accelerators are overcommitted.",
                "They provide 70.00 GiB allocatable, 1/2 of them meet the utilization: 35.00 GiB.",
            ],
        ),
        (
            {"accelerators_per_replica": 1},
            [
                "The selected accelerators are overcommitted.",
                "Using a [0], out of 2 selected accelerators.",
                "They provide 60.00 GiB allocatable, 1/1 of them meet the utilization: 30.00 GiB.",
            ],
        ),
        (
            {"categories": ("embedding",), "args": (), "claim": 70 * GIB + 1},
            [
                "The selected accelerators are overcommitted.",
                "They provide 70.00 GiB allocatable.",
            ],
        ),
    ],
    ids=["all", "some", "no-share"],
)
def test_what_is_overcommitted_is_reported(changes: dict[str, Any], lines: list[str]) -> None:
    request = a_request(
        **{
            "claim": 500 * GIB,
            "args": (HALF,),
            "accelerators": named("a:0", "a:1"),
            **changes,
        }
    )
    small = host("a", 60 * GIB, 60 * GIB, claims=(a_claim(1, 50 * GIB),))
    assert list(rank(request, [small]).messages[-len(lines) :]) == lines


def test_the_other_hosts_are_reported_too() -> None:
    request = a_request(
        500 * GIB, accelerators=named("a:0", "a:1", "b:0", "c:0"), accelerators_per_replica=3
    )
    hosts = [host("a", 100, 100), host("b", 100), host("c", 100)]
    assert rank(request, hosts).messages[-2] == (
        "Using a [0, 1] and 1 of 1 other hosts, out of 4 selected accelerators."
    )
