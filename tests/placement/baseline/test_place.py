from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.place import messages, rank, terms_of
from moorage.placement.baseline.strategies import Outcome
from tests.placement.baseline.builders import a_claim, a_request, best, host, seats


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                "The model requires approximately 18.00 GiB of accelerator memory.",
                "With --gpu-memory-utilization=0.9, all accelerators together need 20.00 GiB, and "
                "90% of each of them must be allocatable.",
            ],
        ),
        (
            {"args": ("--gpu-memory-utilization=1",)},
            [
                "The model requires approximately 18.00 GiB of accelerator memory.",
                "With --gpu-memory-utilization=1.0, all accelerators together need 18.00 GiB, and "
                "100% of each of them must be allocatable.",
            ],
        ),
        (
            {"categories": ("embedding",), "extended_kv_cache": {"ram": 8 * GIB}},
            [
                "The model requires approximately 18.00 GiB of accelerator memory and 8.00 GiB "
                "of RAM."
            ],
        ),
    ],
    ids=["share", "all", "no-share"],
)
def test_the_header_says_what_is_needed(changes: dict[str, Any], lines: list[str]) -> None:
    request = a_request(18 * GIB, **changes)
    assert list(messages(terms_of(request), [])) == lines


@pytest.mark.parametrize(
    ("outcomes", "tail"),
    [
        ([], ()),
        ([("one",)], ("one",)),
        ([("one",), ("two", "three")], ("two", "three")),
        ([("one",), (), ()], ("one",)),
    ],
)
def test_the_last_strategy_that_says_something_has_the_word(
    outcomes: list[tuple[str, ...]], tail: tuple[str, ...]
) -> None:
    embedding = terms_of(a_request(1, categories=("embedding",)))
    assert messages(embedding, [Outcome(lines=lines) for lines in outcomes])[1:] == tail


@pytest.mark.parametrize(
    ("claim", "hosts", "accelerators"),
    [
        (90, [host("a", 50, 50), host("b", 100)], [1]),
        (90, [host("a", 60, 60), host("b", 60), host("c", 60)], [2]),
        (90, [host("a", 60), host("b", 60), host("c", 60)], [1, 1]),
        (900, [host("a", 60), host("b", 60)], []),
    ],
)
def test_the_smallest_kind_of_seat_that_does_is_taken(
    claim: int, hosts: list[HostSnapshot], accelerators: list[int]
) -> None:
    found = seats(a_request(claim), *hosts)
    assert [len(indexes) for seat in found for _, indexes in seat] == accelerators


def test_the_best_candidate_is_chosen_and_the_first_of_equals() -> None:
    hosts = [host("a", 100), host("b", 100), host("c", 100, claims=(a_claim(0, 5, "x"),))]
    spread = rank(a_request(10), hosts)
    packed = rank(a_request(10, strategy="binpack"), hosts)
    assert (best(spread), best(packed)) == (0, 2)
    assert (len(spread.scores), spread.messages) == (3, ())


def test_replicas_of_the_model_are_avoided_first() -> None:
    releases = ("tiny.v1", "other.v1")
    for names, expected in ((releases, 1), (releases[::-1], 0)):
        hosts = [host(name, 100, claims=(a_claim(0, 5, name),)) for name in names]
        assert best(rank(a_request(10), hosts)) == expected


def test_nothing_is_chosen_where_nothing_fits() -> None:
    ranking = rank(a_request(1000), [host("a", 100)])
    assert (ranking.candidates, ranking.scores) == ((), ())
    assert ranking.messages
