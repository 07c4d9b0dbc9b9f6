"""Speed of a model's releases under their acceptance loads, in one line."""

from collections.abc import Iterable

from moorage.common.units import short_seconds

BARS = "▁▂▃▄▅▆▇█"


def load_trend(tpots: Iterable[float | None]) -> str:
    """The median TPOT of each release in seconds, oldest first; empty = fewer than two have one."""
    values = [one for one in tpots if one is not None]
    most = max(values, default=0)
    if len(values) < 2 or not most:
        return ""
    bars = "".join(BARS[round(value / most * (len(BARS) - 1))] for value in values)
    return f"TPOT p50 {bars} {short_seconds(values[0])} to {short_seconds(values[-1])}"
