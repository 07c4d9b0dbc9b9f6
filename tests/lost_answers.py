"""A Prefect server whose answers get lost: it has heard what its client sends once more."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


def lose_answers(monkeypatch: pytest.MonkeyPatch, *states: str) -> list[str]:
    """Lose the first answer to each "this run is in such a state" of Prefect's async client.

    Args:
        monkeypatch: Of the test.
        states: Types of the states, such as COMPLETED.

    Returns:
        Paths to which an answer was lost, as far as that has happened.
    """
    paths: list[str] = []
    send = httpx.AsyncClient.send

    async def losing(client: httpx.AsyncClient, request: httpx.Request, **more: Any) -> Any:
        response, path = await send(client, request, **more), request.url.path
        is_one = any(f'"{state}"'.encode() in request.content for state in states)
        if path.endswith("/set_state") and is_one and path not in paths:
            paths.append(path)
            raise httpx.ReadTimeout("the answer got lost", request=request)
        return response

    monkeypatch.setattr(httpx.AsyncClient, "send", losing)
    return paths
