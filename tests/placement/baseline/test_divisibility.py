from __future__ import annotations

import pytest

from moorage.placement.baseline import ErrorClass
from moorage.placement.baseline.divisibility import Divisibility

HEADS, VISION, VOCABULARY = ErrorClass.HEADS, ErrorClass.VISION_HEADS, ErrorClass.VOCABULARY


@pytest.mark.parametrize(
    ("model", "ranks", "error"),
    [
        (Divisibility(32, 16, 151936), 8, None),
        (Divisibility(25, 16, 151936), 2, HEADS),
        (Divisibility(25, 15, 10001), 2, HEADS),
        (Divisibility(24, 16, 151938), 6, VISION),
        (Divisibility(24, 16, 10001), 6, VISION),
        (Divisibility(32, 16, 10001), 2, VOCABULARY),
        (Divisibility(0, 0, 0), 7, None),
        (Divisibility(), 7, None),
        (Divisibility(128, None, 129280), 7, HEADS),
        (Divisibility(25), None, None),
        (Divisibility(25), 1, None),
    ],
)
def test_the_first_obstacle_is_told(
    model: Divisibility, ranks: int | None, error: ErrorClass | None
) -> None:
    obstacle = model.obstacle(ranks)
    assert (obstacle.error if obstacle else None) == error
    assert obstacle is None or str(ranks) in obstacle.meaning


def test_zero_ranks_are_never_allowed() -> None:
    assert not Divisibility().allows(0)
    assert Divisibility().allows(3)
    assert not Divisibility(25).allows(3)
