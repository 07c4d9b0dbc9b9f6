from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.failures import Cause
from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit, propose
from moorage.placement.replacement import missing_parts, move_reason, pinned_spec, restore_placement
from moorage.spec import RuntimeName
from tests.builders import (
    ON_CPU,
    a_claim,
    a_fleet,
    a_host,
    a_placement,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
)

ROOM = {"room": (0,), "none": (0, 1)}
"""Accelerators, of two, that the running release holds."""


def placed(strategy: str, holds: tuple[int, ...], running: str = "tiny.v1") -> Placement:
    claims = tuple(
        a_claim(Resource.ACCELERATOR, 72 * GIB, index, release="tiny.v1") for index in holds
    )
    spec = a_spec(replace={"strategy": strategy})
    return propose(
        Subject(spec, a_profile()), a_fleet(a_host(claims=claims)), ENGINES, running=running
    )


@pytest.mark.parametrize(
    ("strategy", "holds", "text"),
    [
        ("auto", "room", ""),
        ("auto", "none", "tiny.v1 must stop first: gpu-1: accelerator-memory"),
        ("surge", "room", ""),
        ("canary", "room", ""),
        ("stop-first", "room", "tiny.v1 stops first: `replace.strategy` says so"),
        ("stop-first", "none", "tiny.v1 stops first: `replace.strategy` says so"),
    ],
)
def test_the_strategy_decides_whether_the_old_release_stops_first(
    strategy: str, holds: str, text: str
) -> None:
    placement = placed(strategy, ROOM[holds])
    assert placement.fits
    assert placement.stop_first.startswith(text)
    assert bool(placement.stop_first) == bool(text)


@pytest.mark.parametrize("strategy", ["surge", "canary"])
def test_without_room_beside_the_old_release_it_is_refused_with_the_way_out(strategy: str) -> None:
    with pytest.raises(NoFit) as caught:
        placed(strategy, ROOM["none"])
    assert caught.value.cause is Cause.NO_FIT
    assert "accelerator-memory" in caught.value.detail
    assert caught.value.suggestion.startswith(
        f"It fits instead of tiny.v1, but `replace.strategy: {strategy}` asks for room for both"
    )


def test_what_cannot_be_started_again_is_never_stopped_first() -> None:
    assert placed("stop-first", ROOM["room"], running="").stop_first == ""


SPEC = a_spec(placement={"accelerators": 1, "policy": "whole"})
BEFORE = a_placement(SPEC, a_host())
(SEAT,) = BEFORE.seats
OTHER_PORT = SEAT.port + 7


def a_fleet_with(by: str, *claims: Claim) -> FleetSnapshot:
    own = tuple(replace(claim, release=by) for claim in claims)
    return a_fleet(a_host(claims=own), a_host("gpu-2"))


def restored(fleet: FleetSnapshot, running: str = "", **spec: Any) -> Placement:
    wanted = SPEC.model_copy(update=spec)
    return restore_placement(wanted, BEFORE, "tiny.v1", fleet, running)


def refusal(fleet: FleetSnapshot, running: str = "", **spec: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        restored(fleet, running, **spec)
    assert caught.value.reason is Reason.TAKEN
    return caught.value


def test_a_free_place_is_had_again_with_its_ports() -> None:
    found = restored(a_fleet(a_host(), a_host("gpu-2")))
    assert found.seats == BEFORE.seats
    assert (found.stop_first, found.moved) == ("", "")
    verdicts = {one.host: (one.refusal, one.detail) for one in found.verdicts}
    assert verdicts == {
        "gpu-1": (None, "where tiny.v1 ran"),
        "gpu-2": ("not-selected", "it goes back to where tiny.v1 ran"),
    }


def test_a_port_that_is_taken_is_replaced_by_the_lowest_free_one() -> None:
    port = Claim(host="gpu-1", resource=Resource.PORT, index=SEAT.port, amount=1)
    found = restored(a_fleet_with("other.v1", port))
    assert found.seats[0].port != SEAT.port
    assert found.seats[0].model_copy(update={"port": SEAT.port}) == SEAT


def test_a_port_that_the_spec_fixes_stays() -> None:
    port = Claim(host="gpu-1", resource=Resource.PORT, index=SEAT.port, amount=1)
    note = refusal(a_fleet_with("other.v1", port), port=SEAT.port).note
    assert note == f"gpu-1: port {SEAT.port}: held by other.v1"


def test_what_serves_makes_room_where_both_do_not_fit() -> None:
    found = restored(a_fleet_with("tiny.v2", *SEAT.claims), running="tiny.v2")
    assert found.seats == BEFORE.seats
    assert found.stop_first.startswith("tiny.v2 must stop first: gpu-1: accelerator 0")


def test_what_others_hold_is_the_reason() -> None:
    taken = refusal(a_fleet_with("other.v1", *SEAT.claims), running="tiny.v2")
    assert "held by other.v1" in taken.note
    reason = move_reason(BEFORE, "tiny.v1", taken)
    assert reason.startswith("tiny.v1 ran on gpu-1, which cannot be had again: gpu-1: accel")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (a_host("gpu-2"), "gpu-1 is not in the fleet any more"),
        (a_host(unreachable="no route"), "gpu-1 cannot be reached: no route"),
        (a_host(runtimes=(RuntimeName.PROCESS,)), "gpu-1 has no runtime docker any more"),
        (
            a_host(accelerators=(an_accelerator(0, type="rocm"),)),
            "cuda:0 of gpu-1 is not there any more",
        ),
        (
            a_host(accelerators=(an_accelerator(0, uuid="GPU-1"),)),
            "GPU-0 of gpu-1 is not there any more",
        ),
    ],
)
def test_a_place_that_is_gone(host: HostSnapshot, reason: str) -> None:
    assert refusal(a_fleet(host)).note == reason
    assert missing_parts(BEFORE.seats, a_fleet(host)) == (reason,)


def test_a_seat_follows_its_devices_when_the_driver_numbers_them_anew() -> None:
    (seat,) = a_placement(a_spec(placement={"accelerators": 2}), a_host(gpus=2)).seats
    assert (seat.accelerators, seat.devices) == ((0, 1), ("GPU-0", "GPU-1"))
    before = seat.model_copy(update={"accelerator_bytes": (GIB, 2 * GIB)})
    uuids = ("GPU-9", "GPU-1", "GPU-0")
    host = a_host(accelerators=[an_accelerator(at, uuid=one) for at, one in enumerate(uuids)])
    placement = BEFORE.model_copy(update={"seats": (before,)})
    (found,) = restore_placement(SPEC, placement, "tiny.v1", a_fleet(host)).seats
    assert (found.accelerators, found.devices) == ((1, 2), ("GPU-1", "GPU-0"))
    assert found.accelerator_bytes == (2 * GIB, GIB)


def test_a_seat_of_a_fleet_file_without_identifiers_stays_at_its_indexes() -> None:
    host = a_host(accelerators=(an_accelerator(0, uuid=""), an_accelerator(1, uuid="")))
    assert restored(a_fleet(host)).seats == BEFORE.seats


def test_elsewhere_it_stays_with_its_engine_runtime_image_and_type() -> None:
    spec = pinned_spec(a_spec(), BEFORE, an_image())
    assert (spec.engine.name, spec.engine.runtime) == (BEFORE.engine, RuntimeName.DOCKER)
    assert spec.engine.image == an_image().pinned
    assert spec.engine.version == "0.32.0"
    assert spec.placement.accelerator_kinds == ("cuda",)
    on_cpu = a_placement(a_spec(placement=ON_CPU), a_host())
    assert pinned_spec(a_spec(), on_cpu, None).placement.accelerators == 0
