from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.placement.depths import Depths

ROOMS: list[list[int]] = [[80, 60, 20], [70], [], [60, 60]]


@pytest.mark.parametrize(
    ("count", "needed", "hosts"),
    [(1, 0, 3), (1, 61, 2), (2, 60, 2), (3, 20, 1), (3, 21, 0), (4, 0, 0), (0, 0, 0)],
)
def test_hosts_count_whose_accelerators_have_the_room(count: int, needed: int, hosts: int) -> None:
    assert Depths(ROOMS).hosts(count, needed) == hosts


def test_the_largest_host_and_all_accelerators_are_known() -> None:
    assert (Depths(ROOMS).most, Depths(ROOMS).accelerators) == (3, 6)
    assert (Depths([]).most, Depths([]).accelerators) == (0, 0)


rooms = st.lists(st.lists(st.integers(0, 9), max_size=4).map(lambda r: sorted(r, reverse=True)))


@given(rooms, st.integers(1, 5), st.integers(0, 9))
def test_the_answer_is_that_of_asking_every_host(
    rooms: list[list[int]], count: int, needed: int
) -> None:
    able = [room for room in rooms if len(room) >= count and room[count - 1] >= needed]
    assert Depths(rooms).hosts(count, needed) == len(able)
