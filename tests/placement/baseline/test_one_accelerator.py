from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.snapshot import HostSnapshot
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


def test_every_accelerator_that_is_large_enough_is_a_candidate() -> None:
    request = a_request(90)
    assert shares_of(rank(request, [host("a", 99, 100), host("b", 200)])) == [
        [("a", (1,), (90,))],
        [("b", (0,), (180,))],
    ]


@pytest.mark.parametrize(
    ("claim", "memory", "reserve", "fits"),
    [
        (50, 100, 0, True),
        (51, 100, 0, False),
        (50, 101, 0, True),
        (51, 101, 0, False),
        (50, 100, 50, True),
        (50, 100, 51, False),
        (10, 100, 51, False),
        (0, 100, 100, False),
    ],
)
def test_the_claim_is_compared_with_the_share_and_the_share_must_be_free(
    claim: int, memory: int, reserve: int, fits: bool
) -> None:
    single = host("a", memory, accelerator_reserve=reserve)
    assert seats(a_request(claim, HALF), single) == (alone("a") if fits else [])


def test_a_whole_share_is_taken_cut_to_bytes() -> None:
    assert shares_of(rank(a_request(1), [host("a", 26015170560)])) == [
        [("a", (0,), (23413653504,))]
    ]


@pytest.mark.parametrize(
    ("claim", "reserve", "fits"), [(100, 0, True), (101, 0, False), (60, 40, True), (60, 41, False)]
)
def test_without_a_share_the_claim_is_compared_with_what_is_left(
    claim: int, reserve: int, fits: bool
) -> None:
    ranking = rank(a_request(claim, **EMBEDDING), [host("a", 100, accelerator_reserve=reserve)])
    assert shares_of(ranking) == ([[("a", (0,), (claim,))]] if fits else [])


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", alone("a")), ("--tp=1", alone("a")), ("--tp=2", [])],
)
def test_it_is_not_tried_when_more_are_wanted(line: str, expected: list[Any]) -> None:
    assert seats(a_request(10, line), host("a", 100)) == expected


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ({"ram": 8 * GIB}, alone("b")),
        ({"ram": 7 * GIB}, alone("a", "b")),
        ({"ratio": 1e12}, alone("a", "b")),
        (None, alone("a", "b")),
    ],
)
def test_only_a_stated_size_of_cache_keeps_hosts_out(
    cache: dict[str, Any] | None, expected: list[Any]
) -> None:
    hosts = (host("a", 100, ram_total=8 * GIB - 1), host("b", 100, ram_total=8 * GIB))
    assert seats(a_request(10, extended_kv_cache=cache), *hosts) == expected


def test_the_cache_is_taken_along() -> None:
    ranking = rank(a_request(10, extended_kv_cache={"ratio": 2.0}), [host("a", 100)])
    assert ranking.candidates[0].leader.ram_bytes == 180


def test_of_a_mixed_host_only_the_last_type_is_usable() -> None:
    mixed = host("m", accelerators=(accelerator(0, 100, "cuda"), accelerator(0, 100, "rocm")))
    ranking = rank(a_request(10), [mixed])
    assert [item.accelerator_type for item in ranking.candidates] == ["rocm"]


def test_a_model_that_needs_nothing_finds_a_mixed_host_twice() -> None:
    mixed = host("m", accelerators=(accelerator(0, 100, "cuda"), accelerator(0, 100, "rocm")))
    ranking = rank(a_request(categories=("image",)), [mixed])
    assert [item.accelerator_type for item in ranking.candidates] == ["rocm", "rocm"]


@pytest.mark.parametrize(
    ("request_changes", "hosts", "line"),
    [
        (
            {},
            [host("a", 40 * GIB), host("b", 50 * GIB, claims=(a_claim(0, 5 * GIB),))],
            "The largest accelerator has 45.00 GiB allocatable (90.00%).",
        ),
        (EMBEDDING, [host("a", 40 * GIB)], "The largest accelerator has 40.00 GiB allocatable."),
        ({}, [], "The largest accelerator has 0.00 GiB allocatable (0.00%)."),
    ],
)
def test_the_largest_accelerator_is_reported(
    request_changes: dict[str, Any], hosts: list[HostSnapshot], line: str
) -> None:
    request = a_request(60 * GIB, "--tp=1", across_hosts=False, **request_changes)
    assert rank(request, hosts).messages[-1] == line
