"""Limits on a caller's tokens in one day, such as `1M/day`, counted from the access log."""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated

from pydantic import AfterValidator

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
WRITTEN = re.compile(r"([1-9]\d{0,8})([kMG]?)/day")


def parse_token_limit(written: str) -> int:
    """Number of tokens of a limit, for prompts and answers together.

    Raises:
        ValueError: The text is not a limit.
    """
    found = WRITTEN.fullmatch(written)
    if not found:
        raise ValueError("write tokens a day such as `1M/day`, `500k/day` or `20000/day`")
    return int(found[1]) * UNITS[found[2]]


def end_of_day(now: datetime) -> datetime:
    """End of the UTC day."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


def _check(written: str) -> str:
    if written:
        parse_token_limit(written)
    return written


TokenLimit = Annotated[str, AfterValidator(_check)]
