from __future__ import annotations

from moorage.placement.baseline.allocatable import rooms
from moorage.placement.baseline.views import View, by_type
from tests.placement.baseline.builders import accelerator, host

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
    assert shown(by_type(FLEET, first_look=False)) == {
        "cuda": [("plain", 1, {0: 40}), ("mixed", 2, {0: 80, 1: 80})],
        "rocm": [("amd", 1, {0: 60})],
    }


def test_at_first_a_mixed_host_has_nothing_to_give_of_all_types_but_the_last() -> None:
    assert shown(by_type(FLEET, first_look=True)) == {
        "cuda": [("plain", 1, {0: 40}), ("mixed", 2, {0: 80, 1: 80})],
        "rocm": [("mixed", 2, {}), ("amd", 1, {0: 60})],
    }


def test_the_first_look_decides_which_type_comes_first() -> None:
    fleet = rooms([MIXED, host("amd", 60, type="rocm")], ())
    assert list(by_type(fleet, first_look=True)) == ["rocm", "cuda"]
    assert list(by_type(fleet, first_look=False)) == ["cuda", "rocm"]


def test_an_accelerator_is_left_as_far_as_its_view_says() -> None:
    rocm, cuda = by_type(rooms([MIXED], ()), first_look=True).values()
    assert [view.ratio(view.accelerators[0]) for view in (*rocm, *cuda)] == [0.0, 1.0]
