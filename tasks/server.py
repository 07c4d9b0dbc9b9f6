"""Prefect's server where it does not answer."""

from __future__ import annotations

import httpx

BUSY = 429
BROKEN = 500
UNREACHED = "Failed to reach API"
"""What Prefect says where it could not connect at all."""


def is_server_trouble(error: BaseException) -> bool:
    """Whether Prefect's server did not answer, or said that it cannot now.

    Its client has asked again before, for about a minute (`PREFECT_CLIENT_MAX_RETRIES`).
    """
    if isinstance(error, httpx.HTTPStatusError):
        code = error.response.status_code
        return code == BUSY or code >= BROKEN
    unreached = isinstance(error, RuntimeError) and UNREACHED in str(error)
    return unreached or isinstance(error, httpx.TransportError)
