from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.placement.baseline.place import rank
from tests.placement.baseline.builders import (
    a_claim,
    a_request,
    accelerator,
    alone,
    host,
    named,
    seats,
    shares_of,
)

EACH, PAIRS = {"accelerators_per_replica": 1}, {"accelerators_per_replica": 2}
HALF = "--gpu-memory-utilization=0.5"
EMBEDDING = {"categories": ("embedding",)}
MIXED = host(
    "m",
    accelerators=(
        *(accelerator(0, 100, "rocm"), accelerator(1, 100, "rocm")),
        *(accelerator(0, 200, "cuda"), accelerator(1, 200, "cuda")),
    ),
)


def test_only_named_accelerators_are_taken() -> None:
    request = a_request(10, accelerators=named("b:1"))
    ranking = rank(request, [host("a", 100, 100), host("b", 100, 100)])
    assert shares_of(ranking) == [[("b", (1,), (90,))]]


def test_one_of_them_for_each_replica_gives_a_candidate_each() -> None:
    request = a_request(10, accelerators=named("b:0", "a:1", "a:0"), **EACH)
    assert seats(request, host("a", 100, 100), host("b", 100)) == [
        *alone("a"),
        *alone("a", accelerators=(1,)),
        *alone("b"),
    ]


def test_the_one_with_the_most_left_comes_first() -> None:
    request = a_request(10, HALF, accelerators=named("a:0", "a:1", "a:2"), **EACH)
    hosts = host("a", 100, 200, 100, claims=(a_claim(0, 10), a_claim(1, 18)))
    assert [seat[0][1] for seat in seats(request, hosts)] == [[2], [1], [0]]


@pytest.mark.parametrize(
    ("per_replica", "expected"),
    [
        (2, [[("b", [0, 1])], [("a", [0, 1])]]),
        (3, [[("b", [0, 1, 2])]]),
        (4, [[("b", [0, 1, 2]), ("a", [0])]]),
        (None, [[("b", [0, 1, 2]), ("a", [0, 1])]]),
    ],
)
def test_one_host_goes_before_several_and_the_host_with_the_most_leads(
    per_replica: int | None, expected: list[Any]
) -> None:
    chosen = named("a:0", "a:1", "b:0", "b:1", "b:2")
    request = a_request(10, accelerators=chosen, accelerators_per_replica=per_replica)
    assert seats(request, host("a", *[100] * 4), host("b", *[100] * 4)) == expected


def test_followers_come_in_fleet_order_until_nothing_is_missing() -> None:
    chosen = named("d:0", "c:0", "b:0", "a:0", "a:1")
    request = a_request(10, accelerators=chosen, accelerators_per_replica=4)
    hosts = [host(name, 100, 100) for name in "abcd"]
    assert seats(request, *hosts) == [[("a", [0, 1]), ("b", [0]), ("c", [0])]]


def test_a_follower_gives_those_of_which_the_largest_part_is_taken() -> None:
    chosen = named("a:0", "a:1", "a:2", "b:0", "b:1")
    request = a_request(10, HALF, accelerators=chosen, accelerators_per_replica=4)
    hosts = [host("a", *[100] * 3), host("b", 101, 100)]
    assert seats(request, *hosts) == [[("a", [0, 1, 2]), ("b", [1])]]
    equal = [host("a", *[100] * 3), host("b", 100, 100, claims=(a_claim(0, 10),))]
    assert seats(request, *equal) == [[("a", [0, 1, 2]), ("b", [1])]]


def test_what_is_free_goes_before_what_is_not() -> None:
    request = a_request(10, HALF, accelerators=named("a:0", "a:1", "a:2"), **PAIRS)
    roomy = host("a", 100, 100, 100, claims=(a_claim(0, 51), a_claim(2, 10)))
    assert seats(request, roomy) == alone("a", accelerators=(1, 2))


def test_exactly_the_share_is_enough() -> None:
    request = a_request(100, HALF, accelerators=named("a:0", "a:1"))
    tight = host("a", 100, 100, accelerator_reserve=50)
    assert [item.overcommit for item in rank(request, [tight]).candidates] == [False]


@pytest.mark.parametrize(
    ("per_replica", "types"), [(None, []), (2, []), (1, ["cuda", "rocm"])], ids=str
)
def test_types_do_not_mix(per_replica: int | None, types: list[str]) -> None:
    chosen = (*named("a:0"), *named("r:0", type="rocm"))
    request = a_request(10, accelerators=chosen, accelerators_per_replica=per_replica)
    ranking = rank(request, [host("a", 100), host("r", 100, type="rocm")])
    assert [item.accelerator_type for item in ranking.candidates] == types
    assert ("several types" in " ".join(ranking.messages)) is (not types)


def test_a_mixed_host_gives_the_named_type() -> None:
    for kind, memory in (("rocm", 90), ("cuda", 180)):
        ranking = rank(a_request(10, accelerators=named("m:1", type=kind)), [MIXED])
        assert shares_of(ranking) == [[("m", (1,), (memory,))]]


def test_of_a_shared_index_the_later_type_decides_the_order() -> None:
    mixed = host(
        "m",
        accelerators=(
            *(accelerator(0, 100, "rocm"), accelerator(1, 100, "rocm")),
            *(accelerator(0, 400, "cuda"), accelerator(1, 200, "cuda")),
        ),
    )
    request = a_request(10, accelerators=named("m:0", "m:1", type="rocm"), **EACH)
    assert [seat[0][1] for seat in seats(request, mixed)] == [[1], [0]]


@pytest.mark.parametrize(("taken", "expected"), [(50, [0, 1]), (51, [0, 2])])
def test_but_those_whose_share_is_free_still_go_first(taken: int, expected: list[int]) -> None:
    rocm = (accelerator(index, 100, "rocm") for index in range(3))
    cuda = (accelerator(index, memory, "cuda") for index, memory in enumerate((400, 100, 400)))
    mixed = host("m", accelerators=(*rocm, *cuda), claims=(a_claim(1, taken),))
    chosen = named("m:0", "m:1", "m:2", type="rocm")
    request = a_request(10, HALF, accelerators=chosen, **PAIRS)
    assert seats(request, mixed) == alone("m", accelerators=expected)


def test_without_a_share_a_host_takes_the_claim_split_over_its_own() -> None:
    chosen = named("a:0", "a:1", "a:2", "b:0")
    ranking = rank(
        a_request(100, accelerators=chosen, **EMBEDDING), [host("a", 500, 500, 500), host("b", 500)]
    )
    assert shares_of(ranking) == [[("a", (0, 1, 2), (33, 33, 33)), ("b", (0,), (100,))]]


def test_without_a_share_nothing_free_is_looked_at() -> None:
    full = host("a", 100, claims=(a_claim(0, 100),))
    ranking = rank(a_request(1000, accelerators=named("a:0"), **EMBEDDING), [full])
    assert [item.overcommit for item in ranking.candidates] == [False]


def test_ram_is_claimed_but_never_looked_at() -> None:
    request = a_request(10, accelerators=named("a:0"), extended_kv_cache={"ram": 8 * GIB})
    leader = rank(request, [host("a", 100, ram_total=1)]).candidates[0].leader
    assert leader.ram_bytes == 8 * GIB


def test_heads_are_never_looked_at() -> None:
    request = a_request(10, accelerators=named("a:0", "a:1"), attention_heads=25)
    assert seats(request, host("a", 100, 100)) == alone("a", accelerators=(0, 1))


def test_hosts_that_run_another_spanning_release_do_not_follow() -> None:
    request = a_request(10, accelerators=named("a:0", "b:0", "c:0"), **PAIRS)
    for spanning, follower in ((False, "b"), (True, "c")):
        claims = (a_claim(0, 1, "wide", links=spanning),)
        hosts = [host("a", 100), host("b", 100, claims=claims), host("c", 100)]
        ranking = rank(request, hosts)
        assert [share.host for share in ranking.candidates[0].followers] == [follower]


def test_without_a_follower_there_is_no_seat() -> None:
    request = a_request(10, accelerators=named("a:0", "b:0"))
    hosts = [host("a", 100), host("b", 100, claims=(a_claim(0, 1, "wide", links=True),))]
    assert not rank(request, hosts).candidates


def test_they_may_lead() -> None:
    request = a_request(10, accelerators=named("a:0", "b:0"))
    hosts = [host("a", 100, claims=(a_claim(0, 1, "wide", links=True),)), host("b", 100)]
    assert rank(request, hosts).candidates


def test_several_hosts_are_taken_even_when_spanning_is_not_allowed() -> None:
    request = a_request(10, accelerators=named("a:0", "b:0"), across_hosts=False)
    assert seats(request, host("a", 100), host("b", 100)) == [[("a", [0]), ("b", [0])]]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("a:7",), []),
        (("nowhere:0",), []),
        (("a:0", "nowhere:0"), []),
        (("nowhere:0", "nowhere:1"), []),
        (("cpu:0",), []),
    ],
)
def test_what_is_not_there_is_not_taken(chosen: tuple[str, ...], expected: list[Any]) -> None:
    assert (
        seats(a_request(10, accelerators=named(*chosen)), host("a", 100), host("cpu")) == expected
    )


def test_on_several_hosts_one_that_is_not_there_is_taken_for_nothing() -> None:
    changes = {"accelerators": named("a:0", "a:7", "b:0"), **PAIRS}
    ranking = rank(a_request(10, **changes), [host("a", 100), host("b", 100)])
    assert shares_of(ranking) == [[("a", (0, 7), (90, 0)), ("b", (), ())]]
    assert ranking.candidates[0].overcommit
    ranking = rank(a_request(10, **changes, **EMBEDDING), [host("a", 100), host("b", 100)])
    assert shares_of(ranking) == [[("a", (0, 7), (5, 0)), ("b", (), ())]]


def test_one_that_is_not_there_is_not_looked_for_on_several_hosts() -> None:
    request = a_request(10, accelerators=named("a:7", "b:7"), **EACH)
    assert seats(request, host("a", 100), host("b", 100)) == []


def test_more_than_named_can_only_be_wanted_in_vain() -> None:
    request = a_request(10, accelerators=named("a:0"), **PAIRS)
    assert seats(request, host("a", 100, 100)) == []
