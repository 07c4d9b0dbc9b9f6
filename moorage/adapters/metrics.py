"""Reading the metrics of an engine."""

from __future__ import annotations

import httpx


def read_metrics(url: str, timeout_seconds: float) -> str:
    """The text that an engine answers.

    Args:
        url: Of its metrics.
        timeout_seconds: How long it may take.

    Raises:
        TimeoutError: It is there, but has not answered in time.
        ConnectionError: Nobody answers there.
    """
    try:
        return httpx.get(url, timeout=timeout_seconds, trust_env=False).text
    except httpx.TimeoutException as error:
        raise TimeoutError(str(error)) from error
    except httpx.TransportError as error:
        raise ConnectionError(str(error)) from error
