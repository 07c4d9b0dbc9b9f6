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
    seats,
    shares_of,
)

HALF = "--gpu-memory-utilization=0.5"
EMBEDDING = {"categories": ("embedding",)}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [(91, 2), (180, 2), (181, 3), (270, 3), (271, 4), (361, 0)],
)
def test_as_many_are_taken_as_the_claim_needs(claim: int, expected: int) -> None:
    seat = alone("a", accelerators=range(expected)) if expected else []
    assert seats(a_request(claim), host("a", 100, 100, 100, 100)) == seat


def test_shares_are_cut_to_bytes_one_by_one() -> None:
    assert seats(a_request(18, HALF), host("a", 19, 19)) == alone("a", accelerators=(0, 1))
    assert seats(a_request(19, HALF), host("a", 19, 19)) == []


def test_exactly_the_share_is_not_enough() -> None:
    half_free = host("a", 100, 100, 100, claims=(a_claim(0, 50),))
    assert seats(a_request(51, HALF), half_free) == alone("a", accelerators=(1, 2))
    assert seats(a_request(101, HALF), half_free) == []


def test_those_with_the_most_left_are_taken_first() -> None:
    claims = (a_claim(0, 40), a_claim(1, 10), a_claim(2, 20))
    roomy = host("a", 100, 100, 100, 100, claims=claims)
    assert seats(a_request(51, HALF), roomy) == alone("a", accelerators=(1, 3))
    assert seats(a_request(101, HALF), roomy) == alone("a", accelerators=(1, 2, 3))


def test_equals_are_taken_in_fleet_order() -> None:
    assert seats(a_request(51, HALF), host("a", *[100] * 4)) == alone("a", accelerators=(0, 1))


def test_only_candidates_with_the_fewest_accelerators_stay() -> None:
    hosts = (host("a", 60, 60, 60), host("b", 100, 100), host("c", 100, 100, 100))
    assert seats(a_request(150), *hosts) == alone("b", "c", accelerators=(0, 1))


@pytest.mark.parametrize(
    ("heads", "vocabulary", "taken"),
    [(None, None, 3), (32, None, 4), (30, None, 3), (25, None, 5), (32, 10001, 0), (6, 10002, 3)],
)
def test_a_number_that_does_not_divide_is_passed_over(
    heads: int | None, vocabulary: int | None, taken: int
) -> None:
    request = a_request(250, attention_heads=heads, vocab_size=vocabulary)
    expected = alone("a", accelerators=range(taken)) if taken else []
    assert seats(request, host("a", *[100] * 5)) == expected


@pytest.mark.parametrize(
    ("line", "vision_heads", "taken"),
    [("", 16, 4), ("--language-model-only", 16, 3), ("--language-model-only=false", 16, 4)],
)
def test_vision_heads_count_unless_there_is_no_vision(
    line: str, vision_heads: int, taken: int
) -> None:
    request = a_request(250, line, vision_heads=vision_heads)
    assert seats(request, host("a", *[100] * 5)) == alone("a", accelerators=range(taken))


def test_seven_do_for_the_memory_but_not_for_the_heads() -> None:
    claim = 7 * 136360009728
    request = a_request(claim, attention_heads=128, vocab_size=129280)
    ranking = rank(request, [host("h200", *[151511121920] * 8)])
    assert shares_of(ranking) == [[("h200", tuple(range(8)), (136360009728,) * 8)]]


@pytest.mark.parametrize(
    ("line", "claim", "taken"),
    [
        ("--tp=2", 10, 2),
        ("--tp=2", 180, 2),
        ("--tp=2", 181, 0),
        ("--tp=4", 10, 4),
        ("--tp=8", 10, 0),
        ("--dp=2 --tp=2", 10, 4),
    ],
)
def test_the_wanted_number_is_taken_if_it_holds_the_claim(
    line: str, claim: int, taken: int
) -> None:
    expected = alone("a", accelerators=range(taken)) if taken else []
    assert seats(a_request(claim, line), host("a", *[100] * 4)) == expected


def test_a_pipeline_of_three_takes_four_when_three_do_not_divide_the_heads() -> None:
    request = a_request(10, "--pp=3", attention_heads=16)
    assert seats(request, host("a", *[100] * 8)) == alone("a", accelerators=range(4))
    assert seats(request, host("a", *[100] * 3)) == []


def test_without_a_share_all_that_is_left_is_taken() -> None:
    ranking = rank(
        a_request(150, **EMBEDDING), [host("a", 100, 100, 100, claims=(a_claim(1, 30),))]
    )
    assert shares_of(ranking) == [[("a", (0, 2), (100, 100))]]


def test_without_a_share_a_full_accelerator_is_left_out() -> None:
    full = host("a", 100, 100, claims=(a_claim(1, 100),))
    assert seats(a_request(101, **EMBEDDING), full) == []
    assert seats(a_request(0, "--tp=2", categories=("image",)), full) == []


def test_a_host_with_one_accelerator_is_left_out() -> None:
    assert seats(a_request(10, "--tp=2"), host("a", 100), host("b", 100, 100)) == (
        alone("b", accelerators=(0, 1))
    )


def test_hosts_without_the_ram_are_left_out() -> None:
    cache = {"ram": 8 * GIB}
    hosts = (host("a", 100, 100, ram_total=8 * GIB - 1), host("b", 100, 100, ram_total=8 * GIB))
    ranking = rank(a_request(150, extended_kv_cache=cache), hosts)
    assert [(item.leader.host, item.leader.ram_bytes) for item in ranking.candidates] == [
        ("b", 8 * GIB)
    ]


def test_of_a_mixed_host_only_the_last_type_is_usable() -> None:
    items = (*(accelerator(i, 100, "cuda") for i in (0, 1)), accelerator(2, 100, "rocm"))
    assert seats(a_request(10, "--tp=2"), host("m", accelerators=items)) == []
    assert seats(a_request(10, "--tp=2"), host("m", accelerators=items[::-1])) == (
        alone("m", accelerators=(0, 1))
    )


@pytest.mark.parametrize(("line", "claim", "names"), [("--tp=2", 10, "am"), ("", 150, "ma")])
def test_types_come_in_the_order_of_the_first_look_only_if_this_is_the_first(
    line: str, claim: int, names: str
) -> None:
    items = (accelerator(0, 100, "rocm"), *(accelerator(i, 100, "cuda") for i in (0, 1)))
    hosts = [host("m", accelerators=items), host("a", 100, 100, type="rocm")]
    assert seats(a_request(claim, line), *hosts) == alone(*names, accelerators=(0, 1))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                "The largest host has 70.00 GiB allocatable, 1/2 of its accelerators meet the "
                "utilization: 31.50 GiB."
            ],
        ),
        (EMBEDDING, ["The largest host has 70.00 GiB allocatable."]),
        (
            {"attention_heads": 25, **EMBEDDING},
            [
                "25 attention heads cannot be split into 2 ranks.",
                "The largest host has 70.00 GiB allocatable.",
            ],
        ),
        ({"extended_kv_cache": {"ram": 2000 * GIB}}, ["No host offers several accelerators."]),
    ],
)
def test_the_largest_host_is_reported(changes: dict[str, Any], lines: list[str]) -> None:
    hosts = [
        host("a", 10 * GIB, 10 * GIB),
        host("b", 40 * GIB, 40 * GIB, claims=(a_claim(0, 10 * GIB),)),
    ]
    request = a_request(500 * GIB, across_hosts=False, **changes)
    messages = rank(request, hosts).messages
    assert list(messages[-len(lines) :]) == lines
