from __future__ import annotations

import pytest

from moorage.reports.load_trend import load_trend


@pytest.mark.parametrize(
    ("tpots", "trend"),
    [
        ([0.02, 0.1, None, 0.02], "TPOT p50 ▂█▂ 20 ms to 20 ms"),
        ([0.02], ""),
        ([], ""),
    ],
)
def test_the_tpot_of_releases_is_drawn_where_there_are_two(
    tpots: list[float | None], trend: str
) -> None:
    assert load_trend(tpots) == trend
