from __future__ import annotations

from typing import Any

import pytest

from moorage.placement.claims import Resource
from moorage.placement.placement import Placement
from moorage.placement.snapshot import HostSnapshot
from moorage.placement.verdict import Refusal
from moorage.units import GIB
from tests.builders import a_claim, a_host, a_profile, a_spec, an_accelerator, placed

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
        (a_host(unreachable="no route"), Refusal.UNREACHABLE, "no route"),
        (a_host(gpus=0), Refusal.NO_ACCELERATOR, "accelerators only"),
        (
            a_host(gpus=1, claims=(a_claim(Resource.ACCELERATOR, SHARE),)),
            Refusal.ACCELERATOR_MEMORY,
            "11.60 GiB of accelerator memory",
        ),
        (
            a_host(accelerators=(an_accelerator(memory_free=50 * GIB),)),
            Refusal.ACCELERATOR_MEMORY,
            "72.0 GiB needed, 50.0 GiB available",
        ),
    ],
    ids=["unreachable", "no accelerators", "claimed", "really in use"],
)
def test_what_the_baseline_cannot_take_is_refused_with_a_reason(
    host: HostSnapshot, refusal: Refusal, why: str
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
    by_hand = {"accelerators": ["gpu-1:cuda:0"]}
    assert not by_baseline(host, spec={"placement": by_hand}).fits
    (seat,) = by_baseline(host, spec={"placement": {**by_hand, "overcommit": True}}).seats
    assert seat.accelerator_bytes == (SHARE,)
    assert "more than there is" in seat.reason
