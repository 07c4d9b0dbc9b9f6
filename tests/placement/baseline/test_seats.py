from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit, propose
from tests.builders import a_claim, a_fleet, a_host, a_profile, a_spec, an_accelerator, placed

SHARE = int(80 * GIB * 0.9)


def by_baseline(*hosts: HostSnapshot, spec: Any = None, **profile: Any) -> Placement:
    wish = {"placement": {"policy": "baseline"}, **(spec or {})}
    wish["placement"] = {"policy": "baseline", **wish["placement"]}
    return placed(a_spec(**wish), *hosts, profile=a_profile(**profile))


def test_the_baseline_takes_nine_tenths_of_an_accelerator_whatever_the_model_needs() -> None:
    (seat,) = by_baseline(a_host()).seats
    assert (seat.accelerators, seat.accelerator_bytes) == ((0,), (SHARE,))
    assert seat.utilization == 0.9
    assert "baseline" in seat.reason


def test_the_baseline_adds_accelerators_until_the_estimate_is_met() -> None:
    (seat,) = by_baseline(a_host(gpus=4), weight_bytes=100 * GIB).seats
    assert (seat.accelerators, seat.tensor) == ((0, 1), 2)


@pytest.mark.parametrize(
    ("context", "origin", "served"), [(32768, "derived", 8192), (32768, "user", 32768)]
)
def test_the_baseline_caps_a_context_that_nobody_stated(
    context: int, origin: str, served: int
) -> None:
    (seat,) = by_baseline(a_host(), context=context, context_origin=origin).seats
    assert seat.tokens == served


@pytest.mark.parametrize(
    ("host", "refusal", "why"),
    [
        (a_host(unreachable="no route"), Reason.UNREACHABLE, "no route"),
        (a_host(gpus=0), Reason.NO_ACCELERATOR, "accelerators only"),
        (
            a_host(gpus=1, claims=(a_claim(Resource.ACCELERATOR, SHARE),)),
            Reason.ACCELERATOR_MEMORY,
            "11.60 GiB of accelerator memory",
        ),
        (
            a_host(accelerators=(an_accelerator(memory_free=50 * GIB),)),
            Reason.ACCELERATOR_MEMORY,
            "72.0 GiB needed, 50.0 GiB available",
        ),
    ],
    ids=["unreachable", "no accelerators", "claimed", "really in use"],
)
def test_what_the_baseline_cannot_take_is_refused_with_a_reason(
    host: HostSnapshot, refusal: Reason, why: str
) -> None:
    placement = by_baseline(host)
    (verdict,) = placement.verdicts
    assert not placement.fits
    assert verdict.refusal == refusal
    assert why in verdict.detail


def test_replicas_are_placed_one_after_the_other() -> None:
    spec = {"replicas": 2, "placement": {"strategy": "spread"}}
    seats = by_baseline(a_host("a"), a_host("b"), spec=spec).seats
    assert [(seat.host, seat.replica) for seat in seats] == [("a", 0), ("b", 1)]


def test_a_listed_accelerator_is_taken_beyond_its_room_only_when_the_spec_allows_it() -> None:
    host = a_host(claims=(a_claim(Resource.ACCELERATOR, 40 * GIB),))
    listed_accelerators = {"accelerators": ["gpu-1:cuda:0"]}
    assert not by_baseline(host, spec={"placement": listed_accelerators}).fits
    (seat,) = by_baseline(
        host, spec={"placement": {**listed_accelerators, "overcommit": True}}
    ).seats
    assert seat.accelerator_bytes == (SHARE,)
    assert "more than there is" in seat.reason


def proposed(spec: dict[str, Any], *hosts: HostSnapshot, **subject: Any) -> Placement:
    profile = subject.pop("profile", a_profile())
    wish = a_spec(**{**spec, "placement": {"policy": "baseline", **spec.get("placement", {})}})
    return propose(Subject(wish, profile, **subject), a_fleet(*hosts), ENGINES)


@pytest.mark.parametrize(
    ("gib", "gpus", "across"),
    [(260, [1], False), (260, [2], False), (900, [4], True), (290, [1, 2], True), (900, [], True)],
)
def test_a_model_that_fits_nowhere_is_refused_with_the_words_of_the_rules(
    gib: int, gpus: list[int], across: bool
) -> None:
    fleet = [a_host(f"h{at}", count, bind=f"10.0.0.{at + 1}") for at, count in enumerate(gpus)]
    with pytest.raises(NoFit) as caught:
        proposed(
            {"placement": {"across_hosts": across}, "engine": {"name": "vllm"}},
            *fleet or [a_host(gpus=0)],
            profile=a_profile(weight_bytes=gib * GIB),
        )
    assert caught.value.placement.considered
    assert not caught.value.placement.considered.candidates


def test_ram_of_an_extended_cache_is_claimed_beside_what_the_spec_reserves() -> None:
    cache = {"extended_kv_cache": {"ram": "32GiB"}, "placement": {"ram": "16GiB"}}
    (seat,) = proposed(cache, a_host()).seats
    assert seat.ram_bytes == 48 * GIB
    (seat,) = proposed({"extended_kv_cache": {"ratio": 0.5}}, a_host()).seats
    assert seat.ram_bytes == SHARE // 2


def test_adapters_count_in_the_estimate() -> None:
    (alone,) = proposed({}, a_host(gpus=4), profile=a_profile(weight_bytes=50 * GIB)).seats
    (more,) = proposed(
        {}, a_host(gpus=4), profile=a_profile(weight_bytes=50 * GIB), adapter_bytes=20 * GIB
    ).seats
    assert (len(alone.accelerators), len(more.accelerators)) == (1, 2)


def test_the_next_best_candidate_is_taken_where_the_gate_refuses_the_best() -> None:
    used = an_accelerator(memory_free=10 * GIB)
    hosts = a_host("a", accelerators=(used, an_accelerator(1))), a_host("b", ram_total=0)
    placement = proposed({"extended_kv_cache": {"ram": "1GiB"}}, *hosts)
    (seat,) = placement.seats
    assert (seat.host, seat.accelerators) == ("a", (1,))
    assert placement.considered
    assert placement.considered.candidates[0].leader.accelerators == (0,)


def test_hosts_with_unequal_numbers_make_every_accelerator_a_stage() -> None:
    hosts = a_host("a", 1, bind="10.0.0.1"), a_host("b", 3, bind="10.0.0.2")
    listed = ["a:cuda:0", *(f"b:cuda:{index}" for index in range(3))]
    seats = proposed({"placement": {"accelerators": listed}}, *hosts).seats
    assert [(seat.host, seat.tensor, seat.pipeline) for seat in seats] == [("b", 1, 4), ("a", 1, 4)]


def test_a_request_that_contradicts_the_model_is_refused_before_hosts_are_looked_at() -> None:
    with pytest.raises(Failure) as caught:
        proposed({"engine": {"name": "vllm", "args": ["--tensor-parallel-size=3"]}}, a_host())
    assert caught.value.cause == Cause.BAD_SPEC
    assert caught.value.named == {"class": "tp_attention_heads"}


@pytest.mark.parametrize("policy", ["fitted", "baseline"])
def test_a_replica_takes_some_of_the_listed_accelerators(policy: str) -> None:
    listed = ["a:cuda:0", "a:cuda:1", "b:cuda:0"]
    spec = {"placement": {"policy": policy, "accelerators": listed, "accelerators_per_replica": 1}}
    assert len(proposed({"replicas": 3, **spec}, a_host("a"), a_host("b")).seats) == 3


@pytest.mark.parametrize(("sizes", "fits"), [([], False), (["-tp 2", "-pp 2"], True)])
def test_natively_joined_hosts_need_room_for_a_copy_each(sizes: list[str], fits: bool) -> None:
    hosts = [a_host(name=f"h{at}", gpus=2, bind=f"10.0.0.{at}") for at in (1, 2)]
    args = ["--distributed-executor-backend=mp", *sizes]
    spec = {"engine": {"name": "vllm", "args": args}, "placement": {"across_hosts": True}}
    placement = by_baseline(*hosts, spec=spec, weight_bytes=200 * GIB)
    assert placement.fits == fits
    details = [verdict.detail for verdict in placement.verdicts]
    assert fits or all("hold a copy of the model" in detail for detail in details)
