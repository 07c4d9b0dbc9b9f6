from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.fit import room_of
from moorage.placement.propose import propose
from moorage.placement.request import Request
from moorage.placement.seating import with_seats
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_claim, a_fleet, a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import StatedSizes, a_request, on_hosts, views

TEN = StatedSizes(lambda _, t, p: 10 * GIB // (t * p), outside=GIB)


def wish(by: EngineName = EngineName.VLLM, **changes: Any) -> Request:
    return a_request(a_spec(**changes), engine=ENGINES[by], memory=TEN)


def host(*free: int, **changes: Any) -> HostSnapshot:
    items = (an_accelerator(at, memory_free=gib * GIB) for at, gib in enumerate(free))
    return a_host(**{"accelerators": tuple(items), **changes})


def test_an_engine_with_further_services_gets_a_port_for_each() -> None:
    subject = wish(EngineName.TRITON, engine={"name": "triton", "triton": {"grpc": True}})
    there = host(80, ports_in_use=(40001,))

    (seat,) = on_hosts(subject, there).seats

    assert (seat.port, seat.services) == (40000, {"metrics": 40002, "grpc": 40003})
    ports = {claim.index for claim in seat.claims if claim.resource == Resource.PORT}
    assert ports == {40000, 40002, 40003}


@pytest.mark.parametrize(
    ("facts", "engine", "devices"),
    [
        ({}, {}, ("GPU-0",)),
        ({}, {"container": {"privileged": True}}, ()),
        ({"accelerators": (an_accelerator(uuid=""),)}, {}, ()),
        ({"accelerators": (an_accelerator(type="rocm"),)}, {}, ()),
        ({}, {"runtime": "process", "command": ["serve"]}, ()),
    ],
    ids=["container", "privileged", "not known", "by its node", "process"],
)
def test_a_seat_names_the_devices_that_its_container_gets_by_their_identifiers(
    facts: dict[str, Any], engine: dict[str, Any], devices: tuple[str, ...]
) -> None:
    for policy in ("fitted", "baseline"):
        place = {"accelerators": 1, "policy": policy}
        (seat,) = on_hosts(wish(placement=place, engine=engine), host(80, **facts)).seats
        assert seat.devices == devices
        claims = [one for one in seat.claims if one.resource == Resource.ACCELERATOR]
        assert [one.device for one in claims] == [*(devices or ("",))]


@pytest.mark.parametrize(
    ("placement", "free", "taken"),
    [
        ({}, (80, 80), (0,)),
        ({}, (70, 80), (1,)),
        ({"strategy": "binpack"}, (70, 80), (0,)),
        ({"strategy": "binpack"}, (70, 5, 80, 30), (3,)),
        ({"accelerators": 2}, (70, 80, 75), (1, 2)),
        ({"accelerators": 2, "strategy": "binpack"}, (70, 80, 75), (0, 2)),
        ({"accelerators": ["gpu-1:cuda:1"]}, (80, 30, 80), (1,)),
        ({"accelerators": ["gpu-1:cuda:02"]}, (80, 30, 80), (2,)),
        ({"accelerators": ["gpu-1:cuda:2", "gpu-1:cuda:0"]}, (80, 80, 80), (0, 2)),
    ],
)
def test_the_accelerators_of_a_seat_are_those_of_the_offer(
    placement: dict[str, Any], free: tuple[int, ...], taken: tuple[int, ...]
) -> None:
    (seat,) = on_hosts(wish(placement=placement), host(*free)).seats
    assert seat.accelerators == taken
    assert len(seat.accelerator_bytes) == len(taken)


def test_a_seat_tells_what_it_takes_for_how_much_context() -> None:
    (seat,) = on_hosts(wish(), host(80)).seats
    assert seat.reason == "1 x NVIDIA H100 80GB HBM3 (80.0 GiB), 11.0 GiB of each for 8192 tokens"
    long = a_request(
        profile=a_profile(context=131_072), memory=StatedSizes(lambda t, *_: t * 2**20)
    )
    (seat,) = on_hosts(long, host(20)).seats
    assert seat.tokens == 20_480
    assert seat.reason.endswith(f"for {seat.tokens} tokens of 131072, as many as fit")


@pytest.mark.parametrize("policy", ["fitted", "whole"])
def test_the_policy_decides_between_what_is_needed_and_all_that_is_free(policy: str) -> None:
    (seat,) = on_hosts(wish(placement={"policy": policy}), host(60)).seats
    (claim,) = seat.accelerator_bytes
    if policy == "fitted":
        assert 11 * GIB <= claim < 11.1 * GIB
    else:
        assert 59.9 * GIB < claim <= 60 * GIB
    assert seat.utilization == pytest.approx((claim - GIB) / (80 * GIB), abs=0.001)


def test_an_engine_without_utilization_gets_its_claim_all_the_same() -> None:
    (seat,) = on_hosts(wish(EngineName.TRANSFORMERS, engine={"image": "i:1"}), host(80)).seats
    assert seat.accelerators == (0,)
    assert 11 * GIB <= seat.accelerator_bytes[0] < 11.1 * GIB


def test_each_replica_gets_the_next_port_until_there_is_none() -> None:
    request = wish(replicas=3, placement={"strategy": "binpack"})
    ports = {"port_range": (9000, 9003), "ports_in_use": (9001,)}
    seats = on_hosts(request, host(80, **ports)).seats
    assert [seat.port for seat in seats] == [9000, 9002, 9003]
    assert not on_hosts(wish(replicas=4), host(80, **ports)).fits


def test_a_port_that_is_stated_is_taken_even_outside_the_range() -> None:
    (seat,) = on_hosts(wish(port=8000), host(80)).seats
    assert seat.port == 8000


def test_a_container_is_preferred_and_a_program_taken_where_there_is_none() -> None:
    (seat,) = on_hosts(wish(), host(80)).seats
    assert seat.runtime == RuntimeName.DOCKER


def test_replicas_on_a_selection_share_it() -> None:
    chosen = ["gpu-1:cuda:0", "gpu-1:cuda:1"]
    request = wish(replicas=3, placement={"accelerators": chosen})
    seats = on_hosts(request, host(80, 80)).seats
    assert [seat.accelerators for seat in seats] == [(0, 1)] * 3
    assert not on_hosts(request, host(80, 17)).fits


@pytest.mark.parametrize("unified", [False, True])
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("strangers", [0, 10])
def test_the_next_replica_finds_the_room_that_is_left(
    unified: bool, pending: bool, strangers: int
) -> None:
    """What is seated is claimed and in use, so that it is not counted twice."""
    held = replace(a_claim(Resource.ACCELERATOR, 20 * GIB), pending=pending)
    used = strangers + (0 if pending else 20)
    before = host(80 - used, claims=(held,), unified_memory=unified, ram_free=(128 - used) * GIB)
    request = wish(placement={"ram": "2GiB"})
    (seat,) = on_hosts(request, before).seats
    (after,) = with_seats(views(before), [seat])
    taken = seat.accelerator_bytes[0]
    room = room_of(before)
    assert after.room.memory == [room.memory[0] - taken]
    assert after.room.ram == room.ram - 2 * GIB - (taken if unified else 0)


def exclusive(*claimed: int) -> HostSnapshot:
    """Two GPUs that let in one process at a time, some of them with a small claim."""
    gpus = (an_accelerator(at, exclusive=True) for at in range(2))
    claims = (a_claim(Resource.ACCELERATOR, GIB, at, release="other.v1") for at in claimed)
    return a_host(accelerators=tuple(gpus), claims=tuple(claims))


@pytest.mark.parametrize("overcommit", [False, True])
def test_an_exclusive_accelerator_takes_one_model(overcommit: bool) -> None:
    both = {"accelerators": ["gpu-1:cuda:0", "gpu-1:cuda:1"], "accelerators_per_replica": 1}
    placement = {**both, "overcommit": overcommit}
    seats = on_hosts(wish(replicas=2, placement=placement), exclusive()).seats
    assert [seat.accelerators for seat in seats] == [(0,), (1,)]
    (seat,) = on_hosts(wish(placement=placement), exclusive(0)).seats
    assert seat.accelerators == (1,)

    refused = on_hosts(wish(placement=placement), exclusive(0, 1))
    assert not refused.fits
    (verdict,) = refused.verdicts
    assert verdict.refusal is Reason.ACCELERATOR_MEMORY
    assert "accelerators 0, 1 let in one process at a time, and are claimed" in verdict.detail
    assert "held by other.v1" in verdict.detail


ISLANDS = ((0, 1, 2, 3), (4, 5, 6, 7))
PAIRS = ((0, 1), (4, 5))


@pytest.mark.parametrize(
    ("links", "free", "count", "placement", "taken"),
    [
        # The emptiest are of two islands.
        (ISLANDS, (60, 80, 60, 60, 80, 60, 60, 60), 2, {}, (0, 1)),
        (ISLANDS, (60, 80, 60, 60, 80, 70, 60, 60), 2, {}, (4, 5)),
        (ISLANDS, (5, 80, 5, 5, 60, 60, 60, 60), 2, {}, (4, 5)),
        (ISLANDS, (60, 80, 60, 60, 60, 80, 80, 80), 4, {}, (4, 5, 6, 7)),
        (ISLANDS, (80,) * 8, 8, {}, tuple(range(8))),
        # No island has four that are free: three of one and one of the other.
        (ISLANDS, (80, 80, 3, 3, 60, 60, 60, 3), 4, {}, (0, 4, 5, 6)),
        (ISLANDS, (60, 80, 70, 70, 60, 60, 80, 60), 2, {"strategy": "binpack"}, (4, 5)),
        # Accelerators that nothing joins are a group each.
        (PAIRS, (60, 60, 80, 80, 5, 60, 80, 80), 2, {}, (0, 1)),
        (PAIRS, (60, 60, 80, 80, 3, 3, 3, 3), 4, {}, (0, 1, 2, 3)),
        # One alone is the emptiest, as without links.
        (ISLANDS, (60, 60, 60, 60, 60, 80, 60, 60), 1, {}, (5,)),
        ((), (60, 80, 60, 60, 80, 60, 60, 60), 2, {}, (1, 4)),
    ],
)
def test_accelerators_of_a_seat_are_joined_by_nvlink_where_that_is_possible(
    links: tuple[tuple[int, ...], ...],
    free: tuple[int, ...],
    count: int,
    placement: dict[str, Any],
    taken: tuple[int, ...],
) -> None:
    request = wish(placement={"accelerators": count, **placement})
    (seat,) = on_hosts(request, host(*free, links=links)).seats
    assert seat.accelerators == taken
    joined = not links or count < 2 or any(set(taken) <= set(group) for group in links)
    assert ("NVLink does not join all of them" in seat.reason) != joined


def test_on_an_exclusive_accelerator_the_running_release_stops_first() -> None:
    held = a_claim(Resource.ACCELERATOR, 11 * GIB, release="tiny.v1")
    there = a_host(accelerators=(an_accelerator(exclusive=True),), claims=(held,))
    placement = propose(Subject(a_spec(), a_profile()), a_fleet(there), ENGINES, running="tiny.v1")
    assert placement.fits
    assert placement.stop_first.startswith("tiny.v1 must stop first")
