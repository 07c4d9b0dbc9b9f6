from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.placement.fit import allocatable_memory, free_ports, misfits, room_of
from tests.builders import a_claim, a_host, an_accelerator

ACCELERATOR, RAM = Resource.ACCELERATOR, Resource.RAM
CORES, PORT = Resource.CORES, Resource.PORT


def gpu(gib: int, index: int = 0, release: str = "other.v1", *, pending: bool = False) -> Claim:
    claim = a_claim(ACCELERATOR, gib * GIB, index, release=release)
    return replace(claim, pending=pending)


def ram(gib: int, *, pending: bool = False) -> Claim:
    return replace(a_claim(RAM, gib * GIB), pending=pending)


def used(gib: int) -> dict[str, Any]:
    """One accelerator of 80 GiB of which so much is in use."""
    return {"accelerators": (an_accelerator(memory_free=(80 - gib) * GIB),)}


EXCLUSIVE: dict[str, Any] = {"accelerators": (an_accelerator(exclusive=True),)}


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
        # only one process at a time may use it
        ({**EXCLUSIVE}, 80),
        ({**EXCLUSIVE, "claims": (gpu(30),)}, 0),
        ({**EXCLUSIVE, "claims": (gpu(30, pending=True),)}, 0),
        ({**EXCLUSIVE, "claims": (gpu(30, index=1),)}, 80),
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


def port(number: int, release: str = "other.v1") -> Claim:
    return a_claim(PORT, 1, number, release=release)


@pytest.mark.parametrize(
    ("host", "gib"),
    [
        ({}, 128),
        ({"claims": (ram(28),)}, 100),
        ({"ram_reserve": 8 * GIB}, 120),
        ({"ram_reserve": 8 * GIB, "claims": (ram(20), ram(100))}, 0),
        ({"ram_free": 5 * GIB}, 5),
        ({"ram_free": 60 * GIB, "claims": (ram(100),)}, 28),
        ({"claims": (gpu(70), port(40000))}, 128),
    ],
    ids=str,
)
def test_ram_is_what_nobody_claimed_and_is_really_free(host: dict[str, Any], gib: int) -> None:
    assert room_of(a_host(**host)).ram == gib * GIB


@pytest.mark.parametrize(
    ("host", "gib"),
    [
        ({}, 80),
        ({"claims": (gpu(72),)}, 8),
        ({"claims": (gpu(72, index=1),)}, 80),
        ({"accelerator_reserve": 10 * GIB}, 70),
        ({"accelerators": (an_accelerator(memory_free=3 * GIB),)}, 3),
        ({"claims": (gpu(80), gpu(10))}, 0),
        ({"accelerators": ()}, 0),
    ],
    ids=str,
)
def test_memory_is_what_nobody_claimed_and_is_really_free(host: dict[str, Any], gib: int) -> None:
    assert allocatable_memory(a_host(**host), 0) == gib * GIB


@pytest.mark.parametrize(
    ("host", "ports"),
    [
        ({}, [40000, 40001]),
        ({"ports_in_use": (40000, 8080)}, [40001, 40002]),
        ({"claims": (port(40001),)}, [40000, 40002]),
        ({"port_range": (9000, 9001), "ports_in_use": (9000,)}, [9001]),
        ({"port_range": (9000, 9000), "claims": (port(9000),)}, []),
    ],
    ids=str,
)
def test_the_lowest_free_ports_are_taken(host: dict[str, Any], ports: list[int]) -> None:
    assert free_ports(a_host(**host), 2) == ports


def test_ports_that_are_planned_already_are_not_free() -> None:
    assert free_ports(a_host(), 1, taken=[40000, 40001]) == [40002]


@pytest.mark.parametrize(
    ("claims", "wanted", "reasons"),
    [
        ((), (gpu(80), ram(128), port(40000)), ()),
        ((gpu(72),), (gpu(8),), ()),
        (
            (gpu(72),),
            (gpu(9),),
            ("accelerator 0: 9.0 GiB needed, 8.0 GiB available; held by other.v1",),
        ),
        ((), (gpu(81),), ("accelerator 0: 81.0 GiB needed, 80.0 GiB available",)),
        ((), (gpu(1, index=7),), ("accelerator 7: 1.0 GiB needed, 0 B available",)),
        ((ram(100),), (ram(29),), ("RAM: 29.0 GiB needed, 28.0 GiB available; held by other.v1",)),
        ((port(40000),), (port(40000),), ("port 40000: held by other.v1",)),
        ((), (port(22),), ("port 22: something else listens there",)),
        ((), (port(40000), port(40000)), ("port 40000: wanted 2 times",)),
        ((gpu(72),), (gpu(72), port(22)), ("accelerator 0: 72", "port 22")),
    ],
)
def test_what_does_not_fit_is_told_with_its_numbers(
    claims: tuple[Claim, ...], wanted: tuple[Claim, ...], reasons: tuple[str, ...]
) -> None:
    found = misfits(a_host(claims=claims, ports_in_use=(22,)), wanted)
    assert len(found) == len(reasons)
    assert all(text.startswith(reason) for text, reason in zip(found, reasons, strict=True))


@pytest.mark.parametrize(("amounts", "fits"), [((40, 40), True), ((40, 41), False)])
def test_claims_on_one_resource_add_up(amounts: tuple[int, int], fits: bool) -> None:
    assert (misfits(a_host(), map(gpu, amounts)) == ()) is fits


def test_a_port_that_is_planned_but_not_yet_released_is_taken_too() -> None:
    host = a_host(claims=(port(40000, release=""),))
    assert misfits(host, [port(40000)]) != ()


def test_nobody_is_named_as_holder_where_the_claim_has_no_release_yet() -> None:
    (reason,) = misfits(a_host(claims=(gpu(72, release=""),)), [gpu(72)])
    assert "held by" not in reason


@pytest.mark.parametrize("overcommit", [False, True])
@pytest.mark.parametrize("claims", [(), (gpu(1, release="llama.v2"),)])
def test_what_is_claimed_on_an_exclusive_accelerator_keeps_all_others_out(
    claims: tuple[Claim, ...], overcommit: bool
) -> None:
    host = a_host(**EXCLUSIVE, claims=claims)
    reasons = misfits(host, [gpu(10, release="")], overcommit=overcommit)
    why = "accelerator 0 lets in one process at a time, and is claimed; held by llama.v2"
    assert reasons == (why,) * bool(claims)
