"""Reading the metrics of an engine."""

from __future__ import annotations

from moorage.adapters.engines.engine_http import Question, Unusable, ask_engine_now
from moorage.common.units import MIB

MOST_BYTES = 8 * MIB
"""Of metrics; an engine with hundreds of label sets has some MiB."""


def read_metrics(url: str, timeout_seconds: float) -> str:
    """The text that an engine answers; empty when it sends anything but metrics.

    Args:
        url: Of its metrics.
        timeout_seconds: How long all of it may take.

    Raises:
        TimeoutError: It is there, but has not answered in time.
        ConnectionError: Nobody answers there.
    """
    try:
        answer = ask_engine_now(Question(url), timeout_seconds, MOST_BYTES)
    except Unusable:
        return ""
    # What counts are names and numbers. Beyond ASCII a text would take several times the memory.
    return answer.content.decode("ascii", "replace") if answer.status == 200 else ""
