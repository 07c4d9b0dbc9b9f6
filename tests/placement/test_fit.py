from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.placement.fit import allocatable_memory, allocatable_ram, free_ports, misfits
from tests.builders import a_claim, a_host, an_accelerator

ACCELERATOR, RAM, PORT = Resource.ACCELERATOR, Resource.RAM, Resource.PORT


def gpu(gib: int, index: int = 0, release: str = "other.v1") -> Claim:
    return a_claim(ACCELERATOR, gib * GIB, index, release=release)


def ram(gib: int) -> Claim:
    return a_claim(RAM, gib * GIB)


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
    assert allocatable_ram(a_host(**host)) == gib * GIB


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
