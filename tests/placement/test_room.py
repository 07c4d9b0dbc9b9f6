from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.placement.fit import room_of
from tests.builders import a_claim, a_host, an_accelerator

ACCELERATOR, RAM, CORES = Resource.ACCELERATOR, Resource.RAM, Resource.CORES


def gpu(gib: int, *, pending: bool = False, index: int = 0) -> Claim:
    claim = a_claim(ACCELERATOR, gib * GIB, index)
    return claim.model_copy(update={"pending": pending})


def ram(gib: int, *, pending: bool = False) -> Claim:
    return a_claim(RAM, gib * GIB).model_copy(update={"pending": pending})


def used(gib: int) -> dict[str, Any]:
    """One accelerator of 80 GiB of which so much is in use."""
    return {"accelerators": (an_accelerator(memory_free=(80 - gib) * GIB),)}


@pytest.mark.parametrize(
    ("host", "left"),
    [
        # nobody there
        (used(0), 80),
        # strangers
        (used(30), 50),
        # a proven release that uses what it claims, less, or more
        ({**used(30), "claims": (gpu(30),)}, 50),
        ({**used(10), "claims": (gpu(30),)}, 50),
        ({**used(45), "claims": (gpu(30),)}, 35),
        # a release that is loading: what is in use may be another's
        ({**used(0), "claims": (gpu(30, pending=True),)}, 50),
        ({**used(30), "claims": (gpu(30, pending=True),)}, 20),
        ({**used(20), "claims": (gpu(20), gpu(30, pending=True))}, 30),
        # the reserve covers strangers, and is not taken on top of them
        ({**used(0), "accelerator_reserve": 10 * GIB}, 70),
        ({**used(8), "accelerator_reserve": 10 * GIB}, 70),
        ({**used(12), "accelerator_reserve": 10 * GIB}, 68),
        ({**used(38), "accelerator_reserve": 10 * GIB, "claims": (gpu(30),)}, 40),
        ({**used(42), "accelerator_reserve": 10 * GIB, "claims": (gpu(30),)}, 38),
        # never below nothing
        ({**used(80), "claims": (gpu(30, pending=True),)}, 0),
        ({**used(0), "claims": (gpu(80), gpu(80))}, 0),
        ({**used(0), "accelerator_reserve": 90 * GIB}, 0),
        # claims on another accelerator
        ({**used(0), "claims": (gpu(30, index=1),)}, 80),
    ],
    ids=str,
)
def test_room_on_an_accelerator_is_what_is_neither_claimed_nor_in_use(
    host: dict[str, Any], left: int
) -> None:
    assert room_of(a_host(**host)).memory == [left * GIB]


@pytest.mark.parametrize(
    ("host", "left"),
    [
        ({"ram_free": 100 * GIB}, 100),
        ({"ram_free": 100 * GIB, "claims": (ram(28),)}, 100),
        ({"ram_free": 128 * GIB, "claims": (ram(28, pending=True),)}, 100),
        ({"ram_free": 100 * GIB, "claims": (ram(28, pending=True),)}, 72),
        ({"ram_free": 120 * GIB, "ram_reserve": 16 * GIB}, 112),
        ({"ram_free": 100 * GIB, "ram_reserve": 16 * GIB}, 100),
        ({"ram_total": 0, "ram_free": 0}, 0),
    ],
    ids=str,
)
def test_room_in_ram_follows_the_same_rule(host: dict[str, Any], left: int) -> None:
    assert room_of(a_host(**host)).ram == left * GIB


@pytest.mark.parametrize(("claimed", "left"), [((), 8), ((6,), 2), ((6, 6), 0)])
def test_cores_are_what_nobody_claimed(claimed: tuple[int, ...], left: int) -> None:
    claims = tuple(a_claim(CORES, number) for number in claimed)
    assert room_of(a_host(cpus=8, claims=claims)).cores == left


POOL = {"unified_memory": True, "accelerators": (an_accelerator(gib=128),)}
IN_USE = {"accelerators": (an_accelerator(gib=128, memory_free=88 * GIB),), "ram_free": 88 * GIB}


@pytest.mark.parametrize(
    ("host", "left"),
    [
        ({}, 128),
        ({"claims": (ram(28, pending=True),)}, 100),
        ({"claims": (gpu(40, pending=True),)}, 88),
        # what a proven release uses shows on both sides, and is one and the same
        ({**IN_USE, "claims": (gpu(40),)}, 88),
        ({**IN_USE, "claims": (ram(40),)}, 88),
        ({**IN_USE, "claims": (ram(20), gpu(20))}, 88),
        ({**IN_USE, "claims": (gpu(30),)}, 88),
        ({**IN_USE}, 88),
        ({"ram_reserve": 8 * GIB, "accelerator_reserve": 8 * GIB}, 112),
        ({**IN_USE, "ram_reserve": 8 * GIB}, 88),
    ],
    ids=str,
)
def test_unified_memory_is_one_pool(host: dict[str, Any], left: int) -> None:
    room = room_of(a_host(**{**POOL, **host}))
    assert (room.ram, room.memory) == (left * GIB, [left * GIB])


def test_an_accelerator_may_be_smaller_than_the_pool_it_is_in() -> None:
    room = room_of(a_host(unified_memory=True, accelerators=(an_accelerator(gib=96),)))
    assert (room.ram, room.memory) == (128 * GIB, [96 * GIB])
