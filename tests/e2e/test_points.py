"""Every point of the drills is a call that is there: else a drill would kill nothing."""

from __future__ import annotations

import importlib
from operator import attrgetter

import pytest

from tests.e2e.interrupted import EVERY_POINT, POINTS
from tests.e2e.outage_drill import STEPS


@pytest.mark.parametrize("point", EVERY_POINT)
def test_a_point_is_before_or_after_a_call(point: str) -> None:
    when, module, name = EVERY_POINT[point]
    assert when in ("before", "after")
    found = attrgetter(name.removesuffix(".start"))(importlib.import_module(module))
    assert callable(found)


def test_servers_are_killed_at_points_of_a_deploy() -> None:
    assert set(STEPS) <= POINTS.keys()
    assert len(POINTS) >= 20
