from __future__ import annotations

import pytest

from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline import Strategy
from moorage.placement.baseline.allocatable import rooms
from moorage.placement.baseline.scores import scores
from moorage.placement.candidate import Candidate, Share
from tests.placement.baseline.builders import accelerator, held, held_ram, host


def score(candidate: Candidate, *hosts: HostSnapshot) -> float:
    (found,) = scores(Strategy.BINPACK, [candidate], rooms(hosts, ()))
    return found


def a_share(name: str, *taken: int, ram: int = 0) -> Share:
    return Share(name, tuple(range(len(taken))), taken, ram)


@pytest.mark.parametrize(
    ("share", "of", "expected"),
    [
        (a_share("h", 90), host("h", 100), 60.0),
        (a_share("h", 50), host("h", 100, claims=(held(0, 50),)), 200 / 3),
        (a_share("h", 50, 25), host("h", 100, 50), 100 / 3),
        (a_share("h", 10, 25), host("h", 100, 50), 100 / 3),
        (a_share("h", 90, ram=30), host("h", 100, ram_total=100), 70.0),
        (a_share("h", 90, ram=30), host("h", 100, ram_total=80, claims=(held_ram(20),)), 230 / 3),
        (a_share("h", 90, ram=30), host("h", 100, ram_total=0), 60.0),
        (a_share("h", 90), host("h", 100, claims=(held(0, 100),)), 0.0),
        (a_share("h", ram=30), host("h", ram_total=100), 30.0),
        (Share("h", (7,), (9,)), host("h", 100), 0.0),
    ],
)
def test_a_share_is_as_good_as_it_fills_its_host(
    share: Share, of: HostSnapshot, expected: float
) -> None:
    assert score(Candidate("cuda", share), of) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("followers", "expected"),
    [(1, (5 * 60 + 30) / 6), (2, (5 * 60 + 2 * 60) / 7), (3, (5 * 60 + 3 * 90) / 8)],
)
def test_followers_weigh_by_their_number_and_their_sum(followers: int, expected: float) -> None:
    hosts = [host("a", 100), *(host(f"f{i}", 100) for i in range(followers))]
    shares = tuple(a_share(f"f{i}", 45) for i in range(followers))
    assert score(Candidate("cuda", a_share("a", 90), shares), *hosts) == pytest.approx(expected)


def test_of_a_mixed_host_the_leader_counts_its_type_and_a_follower_what_comes_last() -> None:
    mixed = host("m", accelerators=(accelerator(0, 100, "cuda"), accelerator(0, 50, "rocm")))
    plain = host("p", 100)
    leads = Candidate("cuda", a_share("m", 30), (a_share("p", 0),))
    follows = Candidate("cuda", a_share("p", 0), (a_share("m", 30),))
    assert score(leads, mixed, plain) == pytest.approx(5 * 20 / 6)
    assert score(follows, mixed, plain) == pytest.approx(40 / 6)


def test_no_candidates_have_no_scores() -> None:
    assert scores(Strategy.BINPACK, [], ()) == scores(Strategy.SPREAD, [], ()) == ()
