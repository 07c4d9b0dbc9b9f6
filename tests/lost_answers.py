"""Loses answers of a Prefect server, so that its client repeats requests that already succeeded."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


def lose_answers(monkeypatch: pytest.MonkeyPatch, *states: str) -> list[str]:
    """Lose the first answer for each run when Prefect's async client sets one of some states.

    Args:
        monkeypatch: The test's `monkeypatch`.
        states: Types of the states, such as COMPLETED.

    Returns:
        Paths of the requests whose answers were lost; the list grows with each.
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
