from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB, KIB, human_bytes
from moorage.engines.plan import plan_launch
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.fit import misfits
from moorage.placement.placement import Placed, Placement
from moorage.placement.propose import propose
from moorage.placement.request import Request
from moorage.spec import ModelSpec, Policy
from tests.builders import (
    LEDGER,
    a_claim,
    a_fleet,
    a_host,
    a_model,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
)
from tests.placement.requests import StatedSizes, a_request, on_hosts


def model(gib: int, *chosen: str, overcommit: bool = True, **spec: Any) -> Request:
    """A model of so many GiB on accelerators of gpu-1; 128 KiB for each of 131,072 tokens."""
    memory = StatedSizes(
        lambda tokens, t, p: (gib * GIB + tokens * 128 * KIB) // (t * p), outside=GIB
    )
    placement = {
        "accelerators": list(chosen) or ["gpu-1:cuda:0"],
        "overcommit": overcommit,
        **spec.pop("placement", {}),
    }
    profile = a_profile(context=131_072)
    return a_request(a_spec(placement=placement, **spec), profile, memory=memory)


def held(gib: int, index: int = 0) -> Any:
    return a_claim(Resource.ACCELERATOR, gib * GIB, index)


FULL = a_host(claims=(held(76),))


def test_what_is_listed_by_hand_is_taken_although_it_is_too_full() -> None:
    placement = on_hosts(model(20), FULL)
    (seat,) = placement.seats
    assert seat.accelerators == (0,)
    assert 8192 <= seat.tokens < 9000
    assert 22 * GIB <= seat.accelerator_bytes[0] < 22.2 * GIB
    assert "overcommitted: only 4.0 GiB is free, the engine may fail to start" in seat.reason
    (verdict,) = placement.verdicts
    assert verdict.refusal is None
    assert "4.0 GiB available" in verdict.detail
    assert "more than is free, as the spec allows" in verdict.detail


def test_the_gate_lets_it_through_only_with_leave() -> None:
    claims = on_hosts(model(20), FULL).claims
    assert misfits(FULL, claims, overcommit=True) == ()
    assert misfits(FULL, claims) != ()


def test_nothing_is_overcommitted_where_it_fits() -> None:
    (seat,) = on_hosts(model(20), a_host()).seats
    assert seat.tokens == 131_072
    assert "overcommitted" not in seat.reason


@pytest.mark.parametrize(
    ("request_", "host", "refusal"),
    [
        (model(20, overcommit=False), FULL, Reason.ACCELERATOR_MEMORY),
        (model(20, placement={"accelerators": 1}), a_host(gpus=1, claims=(held(76),)), None),
        (model(100), a_host(), Reason.ACCELERATOR_MEMORY),
        (model(20, placement={"ram": "200GiB"}), FULL, Reason.RAM),
        (model(20, port=9000), a_host(claims=(held(76),), ports_in_use=(9000,)), Reason.PORT),
        (model(20, "gpu-1:cuda:7"), FULL, Reason.NO_ACCELERATOR),
        (
            model(20),
            a_host(unified_memory=True, claims=(held(76),), ram_free=60 * GIB),
            Reason.ACCELERATOR_MEMORY,
        ),
    ],
    ids=[
        "without leave",
        "not by hand",
        "too small when empty",
        "RAM",
        "port",
        "not there",
        "unified memory",
    ],
)
def test_only_accelerators_listed_by_hand_and_large_enough_when_empty_are_overcommitted(
    request_: Request, host: HostSnapshot, refusal: Reason | None
) -> None:
    placement = on_hosts(request_, host)
    assert not placement.fits
    assert placement.verdicts[0].refusal == (refusal or Reason.ACCELERATOR_MEMORY)


def test_several_accelerators_are_taken_exactly_as_listed() -> None:
    host = a_host(gpus=4, claims=(held(76, 1), held(10, 2)))
    (seat,) = on_hosts(model(60, "gpu-1:cuda:2", "gpu-1:cuda:1"), host).seats
    assert seat.accelerators == (1, 2)
    assert len(set(seat.accelerator_bytes)) == 1


def test_accelerators_of_several_hosts_are_overcommitted_together() -> None:
    chosen = ["gpu-1:cuda:0", "gpu-2:cuda:0"]
    plain = model(60, *chosen, placement={"across_hosts": True})
    first, second = FULL.model_copy(update={"bind": "10.0.0.1"}), a_host("gpu-2", bind="10.0.0.2")
    placement = on_hosts(plain, first, second)
    assert [seat.host for seat in placement.seats] == ["gpu-1", "gpu-2"]
    assert ["overcommitted" in seat.reason for seat in placement.seats] == [True, False]


def warned(placement: Placement, *hosts: HostSnapshot, spec: ModelSpec) -> tuple[str, ...]:
    """The warnings of the plan, through the way of a deploy."""
    named = a_fleet(*hosts)
    placed = Placed(spec, a_model(), a_profile(), placement, named, "tiny.v1")
    return plan_launch(placed, an_image(), LEDGER).warnings


@pytest.mark.parametrize("policy", Policy)
def test_overcommitment_is_a_warning_of_the_plan(policy: Policy) -> None:
    place = {"accelerators": ["gpu-1:cuda:0"], "overcommit": True, "policy": policy}
    spec = a_spec(engine={"name": "vllm"}, placement=place)
    for host, is_full in ((FULL, True), (a_host(), False)):
        placement = propose(Subject(spec, a_profile()), a_fleet(host), ENGINES)
        (claimed,) = placement.seats[0].accelerator_bytes
        expected = (
            f"overcommitted: {human_bytes(claimed)} of accelerator 0 of gpu-1 are claimed,"
            " 4.0 GiB are free; the engine may fail to start",
        )
        assert warned(placement, host, spec=spec) == expected * is_full


def test_each_accelerator_that_is_overcommitted_is_warned_of_once() -> None:
    chosen = ["gpu-1:cuda:0", "gpu-2:cuda:0"]
    plain = model(60, *chosen, placement={"across_hosts": True}, engine={"name": "vllm"})
    first, second = FULL.model_copy(update={"bind": "10.0.0.1"}), a_host("gpu-2", bind="10.0.0.2")
    found = warned(on_hosts(plain, first, second), first, second, spec=plain.spec)
    assert ["overcommitted" in one for one in found].count(True) == 1
    host = a_host(gpus=2, claims=(held(76), held(75, 1)))
    both = on_hosts(model(20, "gpu-1:cuda:0", "gpu-1:cuda:1"), host)
    lines = [one for one in warned(both, host, spec=model(20).spec) if "overcommitted" in one]
    assert ["accelerator 0" in one for one in lines] == [True, False]


def test_what_stops_first_leaves_its_room() -> None:
    own = a_claim(Resource.ACCELERATOR, 76 * GIB, release="tiny.v1")
    host, spec = a_host(claims=(own,)), model(20, engine={"name": "vllm"}).spec
    placement = propose(Subject(spec, a_profile()), a_fleet(host), ENGINES, running="tiny.v1")
    assert placement.stop_first
    assert warned(placement, host, spec=spec) == ()


def test_the_running_release_stops_before_anything_is_overcommitted() -> None:
    own = a_claim(Resource.ACCELERATOR, 76 * GIB, release="tiny.v1")
    fleet = a_fleet(a_host(claims=(own,)))
    spec = model(20).spec
    placement = propose(Subject(spec, a_profile()), fleet, ENGINES, running="tiny.v1")
    assert placement.stop_first.startswith("tiny.v1 must stop first")
    assert "overcommitted" not in placement.seats[0].reason
    others = a_fleet(a_host(accelerators=(an_accelerator(memory_free=4 * GIB),), claims=()))
    placement = propose(Subject(spec, a_profile()), others, ENGINES, running="tiny.v1")
    assert placement.stop_first == ""
    assert "overcommitted" in placement.seats[0].reason
