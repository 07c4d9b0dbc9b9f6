from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from moorage.gateway.token_limits import end_of_day, parse_token_limit


@pytest.mark.parametrize(
    ("written", "found"),
    [("20000/day", 20_000), ("500k/day", 500_000), ("1M/day", 10**6), ("2G/day", 2 * 10**9)],
)
def test_a_limit_is_tokens_a_day(written: str, found: int) -> None:
    assert parse_token_limit(written) == found


@pytest.mark.parametrize("written", ["", "1M", "0/day", "1m/day", "1.5M/day", "-1/day", "1M/h"])
def test_anything_else_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="1M/day"):
        parse_token_limit(written)


def test_a_day_ends_at_midnight_in_utc() -> None:
    late = datetime(2026, 11, 23, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert end_of_day(late) == datetime(2026, 11, 25, tzinfo=UTC)
