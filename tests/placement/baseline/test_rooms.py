from __future__ import annotations

from typing import Any

import pytest

from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.rooms import Load, Room, View, by_type, rooms
from tests.placement.baseline.builders import a_claim, a_ram_claim, accelerator, host

SERVES_PORT = Claim(host="h", resource=Resource.PORT, index=40000, amount=1, release="cpu")


def room(of: HostSnapshot, *same_model: str) -> Room:
    return rooms([of], same_model)[0]


@pytest.mark.parametrize(
    ("changes", "free"),
    [
        ({}, (100, 50)),
        ({"claims": (a_claim(0, 60),)}, (40, 50)),
        ({"claims": (a_claim(0, 60), a_claim(0, 30), a_claim(1, 1))}, (10, 49)),
        ({"claims": (a_claim(0, 101),)}, (0, 50)),
        ({"claims": (a_ram_claim(60),)}, (100, 50)),
        ({"accelerator_reserve": 10}, (90, 40)),
        ({"accelerator_reserve": 60, "claims": (a_claim(0, 30),)}, (10, 0)),
    ],
    ids=str,
)
def test_memory_is_what_is_neither_claimed_nor_reserved(
    changes: dict[str, Any], free: tuple[int, ...]
) -> None:
    assert room(host("h", 100, 50, **changes)).free == free


@pytest.mark.parametrize(
    ("changes", "ram"),
    [
        ({}, 1000),
        ({"claims": (a_ram_claim(60), a_ram_claim(40), a_claim(0, 7), SERVES_PORT)}, 900),
        ({"ram_reserve": 1}, 999),
        ({"ram_reserve": 900, "claims": (a_ram_claim(101),)}, 0),
    ],
    ids=str,
)
def test_ram_is_what_is_neither_claimed_nor_reserved(changes: dict[str, Any], ram: int) -> None:
    assert room(host("h", 100, ram_total=1000, **changes)).ram == ram


def test_what_devices_report_does_not_count() -> None:
    busy = accelerator(0, 100).model_copy(update={"memory_free": 1})
    assert room(host("h", accelerators=(busy,), ram_total=9, ram_free=1)).free == (100,)


def test_accelerators_without_memory_are_not_there() -> None:
    assert [item.index for item in room(host("h", 0, 100)).accelerators] == [1]


def test_two_types_that_share_an_index_share_its_claims() -> None:
    mixed = (accelerator(0, 100, "rocm"), accelerator(0, 80, "cuda"), accelerator(1, 80, "cuda"))
    got = room(host("h", accelerators=mixed, claims=(a_claim(0, 30),)))
    assert got.free == (70, 50, 80)
    assert got.free_of_type("rocm") == {0: 70}
    assert got.free_of_type("cuda") == {0: 50, 1: 80}
    assert got.free_by_index == {0: 50, 1: 80}


def test_a_release_counts_once_for_each_accelerator_it_holds() -> None:
    claims = (a_claim(0, 1, "a"), a_claim(1, 1, "a"), a_ram_claim(5, "a"), a_claim(1, 1, "b"))
    got = room(host("h", 9, 9, claims=claims), "b")
    assert (got.same, got.others) == (Load({1: 1}, 1), Load({0: 1, 1: 1}, 2))


def test_a_release_without_accelerators_counts_once() -> None:
    got = room(host("h", 9, claims=(a_ram_claim(5, "cpu"), SERVES_PORT)), "cpu")
    assert (got.same, got.others) == (Load({}, 1), Load({}, 0))


def test_a_room_knows_who_lives_there() -> None:
    assert room(host("h", 9, claims=(a_claim(0, 1, "a"), SERVES_PORT))).releases == {"a", "cpu"}


MIXED = host(
    "mixed",
    accelerators=(
        *(accelerator(0, 100, "rocm"), accelerator(0, 80, "cuda"), accelerator(1, 80, "cuda")),
    ),
)
PLAIN = host("plain", 40)
FLEET = rooms([PLAIN, host("none"), MIXED, host("amd", 60, type="rocm")], ())


def shown(groups: dict[str, list[View]]) -> dict[str, list[tuple[str, int, dict[int, int]]]]:
    return {
        name: [(view.room.host, len(view.accelerators), dict(view.free)) for view in views]
        for name, views in groups.items()
    }


def test_hosts_are_grouped_by_type_in_fleet_order() -> None:
    assert shown(by_type(FLEET, all_types=False)) == {
        "cuda": [("plain", 1, {0: 40}), ("mixed", 2, {0: 80, 1: 80})],
        "rocm": [("amd", 1, {0: 60})],
    }


def test_at_first_a_mixed_host_has_nothing_to_give_of_all_types_but_the_last() -> None:
    assert shown(by_type(FLEET, all_types=True)) == {
        "cuda": [("plain", 1, {0: 40}), ("mixed", 2, {0: 80, 1: 80})],
        "rocm": [("mixed", 2, {}), ("amd", 1, {0: 60})],
    }


def test_the_first_look_decides_which_type_comes_first() -> None:
    fleet = rooms([MIXED, host("amd", 60, type="rocm")], ())
    assert list(by_type(fleet, all_types=True)) == ["rocm", "cuda"]
    assert list(by_type(fleet, all_types=False)) == ["cuda", "rocm"]


def test_an_accelerator_is_left_as_far_as_its_view_says() -> None:
    rocm, cuda = by_type(rooms([MIXED], ()), all_types=True).values()
    assert [view.ratio(view.accelerators[0]) for view in (*rocm, *cuda)] == [0.0, 1.0]
