from __future__ import annotations

import pytest

from moorage.gateway.rates import parse_rate


@pytest.mark.parametrize(
    ("written", "found"), [("60/min", (60, 60)), ("5/s", (5, 1)), ("1000/h", (1000, 3600))]
)
def test_a_rate_is_requests_in_a_time(written: str, found: tuple[int, int]) -> None:
    assert parse_rate(written) == found


@pytest.mark.parametrize("written", ["", "60", "0/s", "5/day", "-1/s", "5 / s", "1e3/s"])
def test_anything_else_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="60/min"):
        parse_rate(written)
