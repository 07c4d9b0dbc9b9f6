from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.place import messages, rank, scores, terms_of
from moorage.placement.baseline.rooms import rooms
from moorage.placement.baseline.strategies import StrategyResult
from moorage.placement.placement import BaselineCandidate, HostShare
from moorage.spec import Strategy
from tests.placement.baseline.builders import (
    a_claim,
    a_ram_claim,
    a_request,
    accelerator,
    best,
    host,
    seats,
)


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
    assert messages(embedding, [StrategyResult(lines=lines) for lines in outcomes])[1:] == tail


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


FREE = 100.0


def scored(*candidates: str, same: str = "", others: str = "") -> list[float]:
    """Scores of `a01` (accelerators 0 and 1 of host a), given what runs on which of them."""
    claims: dict[str, list[Claim]] = {name: [] for name in "abcz"}
    for kind, words in (("same", same), ("other", others)):
        for number, word in enumerate(words.split()):
            claims[word[0]].extend(a_claim(int(i), 1, f"{kind}-{number}") for i in word[1:])
    hosts = [host(name, 9, 9, 9, claims=tuple(own)) for name, own in claims.items()]
    fleet = rooms(hosts, {f"same-{i}" for i in range(9)})
    seats = [
        BaselineCandidate(
            "cuda", HostShare(word[0], tuple(map(int, word[1:])), (1,) * len(word[1:]))
        )
        for word in candidates
    ]
    return list(scores(Strategy.SPREAD, seats, fleet))


def both(of_host: float, of_accelerators: float) -> float:
    return 100 * (0.85 * of_host + 0.15 * of_accelerators)


def test_where_nothing_runs_is_best() -> None:
    assert scored("a0", "b0") == [FREE, FREE]


@pytest.mark.parametrize(
    ("candidates", "same", "others", "expected"),
    [
        (["a0", "b0"], "", "a0", [both(0.85, 1 / 1.2), FREE]),
        (["a0", "b0"], "", "a1", [both(0.85, 1), FREE]),
        (["a0", "b0"], "a0", "", [both(0.45 + 0.20, 1 / 2), FREE]),
        (["a1", "b0"], "a0", "b1", [both(0.45 + 0.20, 1), both(0.85, 1)]),
        (["a0"], "a0", "", [both(0.50 + 0.25 + 0.15, 1 / 2)]),
        (["a0", "b0"], "a0 b0", "", [both(0.90, 1 / 2), both(0.90, 1 / 2)]),
        (["a0", "b0"], "a0 a0 b0", "", [both(0.50 + 0.15, 1 / 3), both(0.90, 1 / 2)]),
        (["a0", "b0"], "a0 b0", "a1", [both(0.50 + 0.25, 1 / 2), both(0.90, 1 / 2)]),
        (
            ["a0", "b0", "c0"],
            "a0",
            "b0 c0 c1",
            [both(0.45 + 0.20, 1 / 2), both(0.85 + 0.075, 1 / 1.2), both(0.85, 1 / 1.2)],
        ),
        (
            ["a0", "b0", "c0"],
            "a0 a0 b0",
            "a0",
            [both(0.45, 1 / 3.2), both(0.45 + 0.175 + 0.20, 1 / 2), FREE],
        ),
        (["a01", "b0"], "", "a0", [both(0.85, (1 / 1.2 + 1) / 2), FREE]),
    ],
)
def test_replicas_of_the_same_model_weigh_more_than_others(
    candidates: list[str], same: str, others: str, expected: list[float]
) -> None:
    assert scored(*candidates, same=same, others=others) == pytest.approx(expected)


def test_a_replica_counts_once_for_each_accelerator() -> None:
    wide, narrow, free = scored("a2", "b2", "c2", others="a01 b0")
    assert (wide, narrow, free) == pytest.approx((both(0.85, 1), both(0.925, 1), FREE))


def test_hosts_that_are_no_candidates_do_not_count() -> None:
    assert scored("a0", same="a0", others="z0 z1") == scored("a0", same="a0")


def test_a_seat_without_accelerators_goes_by_its_host_alone() -> None:
    assert scored("a", "b", others="a0") == pytest.approx([both(0.85, 1), FREE])


def score(candidate: BaselineCandidate, *hosts: HostSnapshot) -> float:
    (found,) = scores(Strategy.BINPACK, [candidate], rooms(hosts, ()))
    return found


def a_share(name: str, *taken: int, ram: int = 0) -> HostShare:
    return HostShare(name, tuple(range(len(taken))), taken, ram)


@pytest.mark.parametrize(
    ("share", "of", "expected"),
    [
        (a_share("h", 90), host("h", 100), 60.0),
        (a_share("h", 50), host("h", 100, claims=(a_claim(0, 50),)), 200 / 3),
        (a_share("h", 50, 25), host("h", 100, 50), 100 / 3),
        (a_share("h", 10, 25), host("h", 100, 50), 100 / 3),
        (a_share("h", 90, ram=30), host("h", 100, ram_total=100), 70.0),
        (
            a_share("h", 90, ram=30),
            host("h", 100, ram_total=80, claims=(a_ram_claim(20),)),
            230 / 3,
        ),
        (a_share("h", 90, ram=30), host("h", 100, ram_total=0), 60.0),
        (a_share("h", 90), host("h", 100, claims=(a_claim(0, 100),)), 0.0),
        (a_share("h", ram=30), host("h", ram_total=100), 30.0),
        (HostShare("h", (7,), (9,)), host("h", 100), 0.0),
    ],
)
def test_a_share_is_as_good_as_it_fills_its_host(
    share: HostShare, of: HostSnapshot, expected: float
) -> None:
    assert score(BaselineCandidate("cuda", share), of) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("followers", "expected"),
    [(1, (5 * 60 + 30) / 6), (2, (5 * 60 + 2 * 60) / 7), (3, (5 * 60 + 3 * 90) / 8)],
)
def test_followers_weigh_by_their_number_and_their_sum(followers: int, expected: float) -> None:
    hosts = [host("a", 100), *(host(f"f{i}", 100) for i in range(followers))]
    shares = tuple(a_share(f"f{i}", 45) for i in range(followers))
    assert score(BaselineCandidate("cuda", a_share("a", 90), shares), *hosts) == pytest.approx(
        expected
    )


def test_of_a_mixed_host_the_leader_counts_its_type_and_a_follower_what_comes_last() -> None:
    mixed = host("m", accelerators=(accelerator(0, 100, "cuda"), accelerator(0, 50, "rocm")))
    plain = host("p", 100)
    leads = BaselineCandidate("cuda", a_share("m", 30), (a_share("p", 0),))
    follows = BaselineCandidate("cuda", a_share("p", 0), (a_share("m", 30),))
    assert score(leads, mixed, plain) == pytest.approx(5 * 20 / 6)
    assert score(follows, mixed, plain) == pytest.approx(40 / 6)


def test_no_candidates_have_no_scores() -> None:
    assert scores(Strategy.BINPACK, [], ()) == scores(Strategy.SPREAD, [], ()) == ()
