"""Where a release may go while another one of its model serves, by the strategy of replacing."""

from __future__ import annotations

import pytest

from moorage.common.failures import Cause
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit, propose
from moorage.placement.request import Subject
from tests.builders import a_claim, a_fleet, a_host, a_profile, a_spec

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
    ("strategy", "holds", "told"),
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
    strategy: str, holds: str, told: str
) -> None:
    placement = placed(strategy, ROOM[holds])
    assert placement.fits
    assert placement.stop_first.startswith(told)
    assert bool(placement.stop_first) == bool(told)


@pytest.mark.parametrize("strategy", ["surge", "canary"])
def test_without_room_beside_the_old_release_it_is_refused_with_the_way_out(strategy: str) -> None:
    with pytest.raises(NoFit) as caught:
        placed(strategy, ROOM["none"])
    assert caught.value.cause is Cause.NO_FIT
    assert "accelerator-memory" in caught.value.detail
    assert caught.value.suggestion.startswith(
        f"It fits instead of tiny.v1, but `replace.strategy: {strategy}` asks for room beside it"
    )


def test_what_cannot_be_started_again_is_never_stopped_first() -> None:
    assert placed("stop-first", ROOM["room"], running="").stop_first == ""
