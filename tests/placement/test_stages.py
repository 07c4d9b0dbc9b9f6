from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.units import GIB
from moorage.placement.depths import Depths
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.stages import shares, stages_over_hosts
from tests.builders import a_profile
from tests.placement.requests import Told, a_request

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
