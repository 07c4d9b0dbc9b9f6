from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB
from moorage.placement.many_hosts import Depths, shares, stages_over_hosts
from moorage.placement.view import AcceleratorKind
from tests.builders import a_profile
from tests.placement.requests import Told, a_request

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


KIND = AcceleratorKind("cuda", "x", 80 * GIB)


@pytest.mark.parametrize(
    ("world", "able", "hosts", "taken"),
    [
        (5, [4, 4], 2, [4, 1]),
        (6, [4, 2], 2, [4, 2]),
        (2, [4, 4], 2, [1, 1]),
        (9, [4, 4, 4], 3, [4, 4, 1]),
        (5, [4, 4, 4], 3, [3, 1, 1]),
    ],
)
def test_hosts_take_as_many_stages_as_they_can_and_at_least_one(
    world: int, able: list[int], hosts: int, taken: list[int]
) -> None:
    assert shares(world, able, hosts) == taken


@given(
    st.lists(st.lists(st.sampled_from([0, 20, 40, 80]), max_size=4), max_size=5),
    st.integers(10, 600),
)
def test_the_fewest_hosts_for_each_pipeline_are_found(rooms: list[list[int]], gib: int) -> None:
    """Against counting: the hosts with most accelerators that have the room."""
    request = a_request(
        profile=a_profile(layers=12), memory=Told(lambda _, t, p: gib * GIB // (t * p))
    )
    sizes = [sorted((left * GIB for left in room), reverse=True) for room in rooms]
    found = stages_over_hosts(request, KIND, Depths(sizes))
    for hosts, stages in found.items():
        able = [sum(left >= stages.ask.bytes for left in room) for room in sizes]
        able.sort(reverse=True)
        taken = shares(stages.world, able, hosts)
        assert len(taken) == hosts >= 2
        assert sum(taken) == stages.world <= 12
        assert all(0 < share <= there for share, there in zip(taken, able, strict=False))
        assert hosts == 2 or sum(able[: hosts - 1]) < stages.world
    if not found:
        for world in range(2, 13):
            needed = gib * GIB / world
            able = [sum(left > needed * 1.01 + 80 * GIB // 500 for left in r) for r in sizes]
            assert sum(able) < world or sum(each > 0 for each in able) < 2
