from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.candidates import Candidate
from moorage.placement.demand import Split
from moorage.placement.request import Request
from moorage.placement.scores import WEIGHTS, score_all
from moorage.spec import Strategy
from tests.builders import a_claim, a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import a_request, on_hosts, views

IMAGE = "vllm/vllm-openai:v0.32.0"
SPREAD, BINPACK = Strategy.SPREAD, Strategy.BINPACK


def request(strategy: Strategy, **changes: Any) -> Request:
    return a_request(a_spec(placement={"strategy": strategy}, **changes), staged="m@1")


def host(name: str = "gpu-1", *free: int, **changes: Any) -> HostSnapshot:
    items = (an_accelerator(at, memory_free=gib * GIB) for at, gib in enumerate(free or (80, 80)))
    return a_host(name, accelerators=tuple(items), **changes)


def port(release: str, number: int = 40000) -> Claim:
    return a_claim(Resource.PORT, 1, number, release=release)


def points(
    wanted: Request, *hosts: HostSnapshot, rooms: tuple[list[int], ...] = ([80],), needed: int = 20
) -> dict[str, float]:
    """By term the points of one offer over these hosts."""
    seen = views(*hosts)
    candidate = Candidate(
        views=tuple(seen),
        rooms=tuple([gib * GIB for gib in room] for room in rooms),
        kind=next(iter(seen[0].groups)),
        split=Split(),
        needed=needed * GIB,
    )
    score_all(wanted, [candidate], seen)
    assert candidate.score == pytest.approx(sum(candidate.points))
    names = WEIGHTS[wanted.spec.placement.strategy]
    return dict(zip(names, candidate.points, strict=True))


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_terms_make_a_hundred(strategy: Strategy) -> None:
    assert sum(weight for weight, _ in WEIGHTS[strategy].values()) == 100


@pytest.mark.parametrize(
    ("claims", "apart"),
    [
        ((), 40),
        ((port("other.v1"),), 40),
        ((port("tiny.v1"),), 20),
        ((port("tiny.v1"), port("tiny.v2", 1)), 40 / 3),
        ((port("tiny.vision.v1"),), 40),
        ((port("tiny.v1.v3"),), 40),
        ((port(""),), 20),
    ],
    ids=str,
)
def test_replicas_of_one_model_are_kept_apart(claims: tuple[Claim, ...], apart: float) -> None:
    assert points(request(SPREAD), host(claims=claims))["apart"] == pytest.approx(apart)


@pytest.mark.parametrize(
    ("free", "room", "host_free", "accelerators_free"),
    [
        ((80, 80), [80], 30, 15),
        ((80, 40), [80], 22.5, 15),
        ((40, 20), [40], 11.25, 5),
        ((20, 20), [20], 7.5, 0),
        ((80, 60), [80, 60], 26.25, 12.5),
    ],
)
def test_spreading_counts_what_stays_free(
    free: tuple[int, ...], room: list[int], host_free: float, accelerators_free: float
) -> None:
    found = points(request(SPREAD), host("gpu-1", *free), rooms=(room,))
    assert found["host free"] == pytest.approx(host_free)
    assert found["accelerators free"] == pytest.approx(accelerators_free)


@pytest.mark.parametrize(
    ("free", "room", "host_full", "accelerators_full"),
    [((80, 80), [80], 0, 12.5), ((40, 20), [20], 25, 50), ((40, 40), [40], 20, 37.5)],
)
def test_packing_counts_what_is_filled(
    free: tuple[int, ...], room: list[int], host_full: float, accelerators_full: float
) -> None:
    found = points(request(BINPACK), host("gpu-1", *free), rooms=(room,))
    assert found["host full"] == pytest.approx(host_full)
    assert found["accelerators full"] == pytest.approx(accelerators_full)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize(
    ("there", "term", "given"),
    [
        ({"models": frozenset({"m@1"})}, "weights there", 7),
        ({"models": frozenset({"m@2"})}, "weights there", 0),
        ({"images": frozenset({IMAGE})}, "image there", 3),
        ({"images": frozenset({"other:1"})}, "image there", 0),
        ({}, "weights there", 0),
    ],
    ids=str,
)
def test_what_is_there_already_counts(
    strategy: Strategy, there: dict[str, Any], term: str, given: float
) -> None:
    assert points(request(strategy), host(**there))[term] == given


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_replica_over_hosts_scores_their_mean_whoever_leads(strategy: Strategy) -> None:
    first = host("gpu-1", 80, 80, models=frozenset({"m@1"}), claims=(port("tiny.v1"),))
    second = host("gpu-2", 60, 30)
    wanted = request(strategy)
    rooms = ([80, 80], [60, 30])
    alone = [
        points(wanted, first, rooms=rooms[:1]),
        points(wanted, second, rooms=rooms[1:]),
    ]
    for hosts, parts in (((first, second), rooms), ((second, first), rooms[::-1])):
        joint = points(wanted, *hosts, rooms=parts)
        for term, value in joint.items():
            if term == "weights there":
                assert value == 3.5
            else:
                assert value == pytest.approx((alone[0][term] + alone[1][term]) / 2)


def test_on_cpu_ram_takes_the_place_of_accelerators() -> None:
    seen = views(a_host(ram_free=64 * GIB))
    wanted = request(SPREAD)
    candidate = Candidate((seen[0],), ([64 * GIB],), None, Split(), 32 * GIB)
    score_all(wanted, [candidate], seen)
    assert candidate.points == pytest.approx((40, 15, 5, 0, 0))


def test_a_second_replica_leaves_the_emptiest_host_for_one_that_has_none() -> None:
    spec = a_spec(replicas=2, placement={"accelerators": 1})
    hosts = (host("empty", *[80] * 8), host("busy", 60, 60))
    assert [seat.host for seat in on_hosts(a_request(spec), *hosts).seats] == ["empty", "busy"]


def test_the_host_with_weights_and_image_wins_among_equals() -> None:
    hosts = (
        host("bare"),
        host("image", images=frozenset({IMAGE})),
        host("both", images=frozenset({IMAGE}), models=frozenset({"m@1"})),
        host("weights", models=frozenset({"m@1"})),
    )
    placement = on_hosts(request(SPREAD), *hosts)
    assert placement.seats[0].host == "both"
    scores = {verdict.host: verdict.score for verdict in placement.verdicts}
    assert scores["both"] > scores["weights"] > scores["image"] > scores["bare"]
    assert placement.terms == tuple(WEIGHTS[SPREAD])


def test_a_seed_chooses_among_equals_only() -> None:
    hosts = [host(f"gpu-{at}") for at in range(8)]
    fuller = host("fuller", 80, 40)
    chosen = {
        on_hosts(a_request(a_spec(placement={"seed": seed})), fuller, *hosts).seats[0].host
        for seed in range(20)
    }
    assert len(chosen) > 3
    assert "fuller" not in chosen
    first = on_hosts(a_request(profile=a_profile()), fuller, *hosts).seats[0].host
    assert first == "gpu-0"
