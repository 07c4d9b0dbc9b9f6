from __future__ import annotations

from datetime import timedelta

import pytest

from moorage.operations.reconcile.actions import delay_seconds, not_before
from tests.builders import NOON


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300), (10_000, 300)],
)
def test_a_start_waits_twice_as_long_each_time_and_five_minutes_at_most(
    attempts: int, seconds: float
) -> None:
    assert delay_seconds(attempts) == seconds
    assert not_before(NOON, attempts) == NOON + timedelta(seconds=seconds)
