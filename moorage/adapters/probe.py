"""Asking an engine: a TCP connection or an HTTP request, never for longer than it may take."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any

import httpx

from moorage.readiness.protocol import Probe


async def ask(
    endpoint: str, probe: Probe, timeout_seconds: float, api_key: str = ""
) -> tuple[int, Any]:
    """Send a probe.

    Args:
        endpoint: Base URL of the engine.
        probe: What to ask.
        timeout_seconds: How long it may take.
        api_key: Sent as a bearer token when there is one.

    Returns:
        HTTP status and answer (JSON where it is JSON, else text). Status 0 = no connection, with
        the reason as answer; a TCP connection that is accepted counts as 200.
    """
    try:
        if not probe.method:
            return await _connect(endpoint, timeout_seconds)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        async with httpx.AsyncClient(
            timeout=timeout_seconds, trust_env=False, headers=headers, verify=_trust()
        ) as client:
            response = await client.request(probe.method, endpoint + probe.path, json=probe.body)
    except (httpx.HTTPError, OSError, TimeoutError) as error:
        return 0, str(error) or type(error).__name__
    try:
        return response.status_code, response.json()
    except ValueError:
        return response.status_code, response.text


@cache
def _trust() -> ssl.SSLContext:
    """Whom TLS trusts, read once: reading it takes longer than all the rest of a question."""
    return httpx.create_ssl_context(trust_env=False)


async def _connect(endpoint: str, timeout_seconds: float) -> tuple[int, Any]:
    url = httpx.URL(endpoint)
    port = url.port or (443 if url.scheme == "https" else 80)
    opening = asyncio.open_connection(url.host, port)
    _, writer = await asyncio.wait_for(opening, timeout_seconds)
    writer.close()
    await writer.wait_closed()
    return 200, "accepted"
