"""A command of moorage whose Prefect server refuses runs of some models, so many times each.

    python -m tests.e2e.unwilling '{"llama": 2}' redeploy --all --yes

Only the answer 503 is not the server's own. Nobody waits long before asking again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable

import httpx

from flows import subflows as below
from moorage.cli.app import app

REFUSED = 503
Send = Callable[[httpx.AsyncHTTPTransport, httpx.Request], Awaitable[httpx.Response]]


def refusing(times: dict[str, int], send: Send) -> Send:
    """Send requests, but for those that would make a run for such a model below another run."""

    async def handle(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        model = _model(request)
        if times.get(model, 0) == 0:
            return await send(transport, request)
        times[model] -= 1
        return httpx.Response(REFUSED, headers={"Retry-After": "0"}, request=request)

    return handle


def _model(request: httpx.Request) -> str:
    if request.method != "POST" or not request.url.path.endswith("/flow_runs/"):
        return ""
    wanted = json.loads(request.content)
    spec = wanted["parameters"].get("spec") if wanted.get("parent_task_run_id") else None
    return str(spec["name"]) if spec else ""


if __name__ == "__main__":
    below.PAUSES_SECONDS = (0.1, 0.1)
    transport = httpx.AsyncHTTPTransport
    wanted = refusing(json.loads(sys.argv[1]), transport.handle_async_request)
    transport.handle_async_request = wanted  # type: ignore[assignment, method-assign]
    app(sys.argv[2:])
