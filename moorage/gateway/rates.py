"""Limits on the rate of a caller's requests, such as `60/min`, enforced by Envoy."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

SECONDS = {"s": 1, "min": 60, "h": 3600}
WRITTEN = re.compile(r"([1-9]\d{0,8})/(s|min|h)")
PLENTY = 2**32 - 1
"""Requests a second that callers without a rate may make."""


def parse_rate(written: str) -> tuple[int, int]:
    """Number of requests of a rate, and the seconds in which they may be made.

    Raises:
        ValueError: The text is not a rate.
    """
    found = WRITTEN.fullmatch(written)
    if not found:
        raise ValueError("write a rate such as `60/min`, `5/s` or `1000/h`")
    return int(found[1]), SECONDS[found[2]]


def rate_limits(rates: Mapping[str, str]) -> dict[str, Any]:
    """Rates by caller, as the configuration of Envoy's filter `local_ratelimit`."""
    caller = {"key": "moorage", "path": [{"key": "caller"}]}
    by_caller = {"descriptor_key": "caller", "metadata_key": caller, "source": "DYNAMIC"}
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    return {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3"
        ".LocalRateLimit",
        "stat_prefix": "callers",
        "token_bucket": _bucket(PLENTY, 1),
        "filter_enabled": always,
        "filter_enforced": always,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
        "rate_limits": [{"actions": [{"metadata": by_caller}]}],
        "descriptors": [
            {
                "entries": [{"key": "caller", "value": name}],
                "token_bucket": _bucket(*parse_rate(rate)),
            }
            for name, rate in rates.items()
        ],
    }


def _bucket(requests: int, seconds: int) -> dict[str, Any]:
    interval = f"{seconds}s"
    return {"max_tokens": requests, "tokens_per_fill": requests, "fill_interval": interval}


def _check(written: str) -> str:
    if written:
        parse_rate(written)
    return written


Rate = Annotated[str, AfterValidator(_check)]
