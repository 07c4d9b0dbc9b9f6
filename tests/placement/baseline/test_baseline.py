from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline import CacheInRam, ErrorClass, Strategy, decide
from moorage.placement.baseline.baseline import messages
from moorage.placement.baseline.terms import terms
from tests.placement.baseline.builders import a_request, held, host, named, seats


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
            {"parameters": ("--gpu-memory-utilization=1",)},
            [
                "The model requires approximately 18.00 GiB of accelerator memory.",
                "With --gpu-memory-utilization=1.0, all accelerators together need 18.00 GiB, and "
                "100% of each of them must be allocatable.",
            ],
        ),
        (
            {"categories": ("embedding",), "cache_in_ram": CacheInRam(size=8 * GIB)},
            [
                "The model requires approximately 18.00 GiB of accelerator memory and 8.00 GiB "
                "of RAM."
            ],
        ),
    ],
    ids=["share", "all", "no-share"],
)
def test_the_header_says_what_is_needed(changes: dict[str, Any], lines: list[str]) -> None:
    assert list(messages(terms(a_request(18 * GIB, **changes)), [])) == lines


@pytest.mark.parametrize(
    ("told", "tail"),
    [
        ([], ()),
        ([("one",)], ("one",)),
        ([("one",), ("two", "three")], ("two", "three")),
        ([("one",), (), ()], ("one",)),
    ],
)
def test_the_last_strategy_that_says_something_has_the_word(
    told: list[tuple[str, ...]], tail: tuple[str, ...]
) -> None:
    embedding = terms(a_request(1, categories=("embedding",)))
    assert messages(embedding, told)[1:] == tail


MP = "--distributed-executor-backend=mp"
MODEL = {"attention_heads": 25, "vision_heads": 15, "vocabulary": 10001}


@pytest.mark.parametrize(
    ("line", "changes", "error"),
    [
        ("--tp=0", {}, ErrorClass.NON_POSITIVE),
        ("--tp=2", {"attention_heads": 32, "vision_heads": 16, "vocabulary": 100}, None),
        ("--tp=2", MODEL, ErrorClass.HEADS),
        ("--tp=5", MODEL, ErrorClass.VOCABULARY),
        ("--tp=25", MODEL, ErrorClass.VISION_HEADS),
        ("--tp=25 --language-model-only", MODEL, ErrorClass.VOCABULARY),
        ("--tp=2", {**MODEL, "categories": ("image",)}, None),
        ("--tp=2 --omni", MODEL, None),
        ("--pp=2", MODEL, None),
        ("--tp=2 --dp=3 --dpl=2", {}, None),
        (f"--tp=2 --dp=3 --dpl=2 {MP}", {}, ErrorClass.LOCAL_RANKS),
        (f"--tp=2 --dp=3 --dpl=2 {MP}", MODEL, ErrorClass.HEADS),
        ("--tp=2", {"manual": named("a:0")}, ErrorClass.COUNT),
        ("--tp=2", {"manual": named("a:0"), **MODEL}, ErrorClass.COUNT),
        ("--tp=2 --pp=-1", {"manual": named("a:0")}, ErrorClass.NON_POSITIVE),
        ("--gpu-memory-utilization=x", {}, ErrorClass.UNREADABLE),
        ("--tp=2 --gpu-memory-utilization=x", MODEL, ErrorClass.HEADS),
        ("--served-model-name 'open", {}, ErrorClass.UNREADABLE),
    ],
)
def test_the_first_contradiction_of_a_request_is_told(
    line: str, changes: dict[str, Any], error: ErrorClass | None
) -> None:
    decision = decide(a_request(10, line, **changes), [host("a", *[100] * 8)])
    assert (decision.refusal.error if decision.refusal else None) == error
    if decision.refusal:
        assert not decision.candidates
        assert decision.messages == (decision.refusal.meaning,)


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
    hosts = [host("a", 100), host("b", 100), host("c", 100, claims=(held(0, 5, "x"),))]
    spread = decide(a_request(10), hosts)
    packed = decide(a_request(10, strategy=Strategy.BINPACK), hosts)
    assert (spread.chosen, packed.chosen) == (0, 2)
    assert (len(spread.scores), spread.messages) == (3, ())


def test_replicas_of_the_model_are_avoided_first() -> None:
    hosts = [
        host("a", 100, claims=(held(0, 5, "mine"),)),
        host("b", 100, claims=(held(0, 5, "x"),)),
    ]
    assert decide(a_request(10), hosts, same_model={"mine"}).chosen == 1
    assert decide(a_request(10), hosts, same_model={"x"}).chosen == 0


def test_nothing_is_chosen_where_nothing_fits() -> None:
    decision = decide(a_request(1000), [host("a", 100)])
    assert (decision.candidates, decision.scores, decision.chosen) == ((), (), None)
    assert decision.messages
