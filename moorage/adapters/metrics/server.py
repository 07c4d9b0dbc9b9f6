"""Serves metrics and targets over HTTP, to Prometheus and to no web page.

What it answers holds no secret, but the names of models and hosts, so that it listens on the
loopback unless it is told otherwise. `Guard` keeps away pages whose name was rebound in the DNS. A
connection gets one answer and ends after `WHOLE_SECONDS`, however slowly it is sent; there are at
most `AT_ONCE` of them, and the ledger is read for one at a time.
"""

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from uvicorn.protocols.http.h11_impl import H11Protocol

from moorage.adapters.metrics.exporter import Exporter, written
from moorage.adapters.prefect.api_server import Guard, Message, Receive, Send, is_loopback
from moorage.common.failures import Failure
from moorage.operations.metrics.targets import GATEWAY_PATH

WHOLE_SECONDS = 60.0
"""Limit for a request and its answer; the first one reads the whole history of the ledger."""

AT_ONCE = 16

Answer = tuple[int, str, bytes]
"""Status, type and body."""

TEXT = "text/plain; charset=utf-8"


class MetricsApp:
    """The ASGI application.

    Args:
        exporter: What it reads.
    """

    def __init__(self, exporter: Exporter) -> None:
        self._exporter, self._turn = exporter, asyncio.Lock()

    async def __call__(self, scope: Message, _receive: Receive, send: Send) -> None:
        """Answer one request; its body is not read."""
        if scope["type"] != "http":
            return
        status, kind, body = await self._answer(scope)
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Message) -> Answer:
        if scope["method"] != "GET":
            return 405, TEXT, b"only GET\n"
        read = self._reader(scope)
        if read is None:
            return 404, TEXT, b"/metrics, /targets or /gateways/NAME\n"
        try:
            async with self._turn:
                return await asyncio.to_thread(read)
        except Failure as failure:
            return 503, TEXT, f"{failure}\n".encode()

    def _reader(self, scope: Message) -> Callable[[], Answer] | None:
        """What makes the answer; None = nothing is there."""
        path: str = scope["path"]
        if path == "/metrics":
            return lambda: (200, CONTENT_TYPE_LATEST, written(self._exporter.metrics()))
        if path == "/targets":
            return lambda: (200, "application/json", _json(self._exporter.targets(_host(scope))))
        if path.startswith(GATEWAY_PATH):
            name = path.removeprefix(GATEWAY_PATH)
            return lambda: (
                200,
                CONTENT_TYPE_LATEST,
                written(self._exporter.gateway_metrics(name)),
            )
        return None


class LimitedProtocol(H11Protocol):
    """A connection that ends in time, whatever the other side does."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and count the time."""
        super().connection_made(transport)
        self._end = self.loop.call_later(WHOLE_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end.cancel()
        super().connection_lost(exc)


def metrics_server(
    exporter: Exporter, host: str, port: int, names: Collection[str]
) -> uvicorn.Server:
    """A server that is not started yet.

    Args:
        names: Host names that it answers to, besides those of the loopback.
    """
    app: Any = Guard(MetricsApp(exporter), names, (), exposed=not is_loopback(host))
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=LimitedProtocol,
        ws="none",
        lifespan="off",
        limit_concurrency=AT_ONCE,
        log_level="warning",
        access_log=False,
    )
    return uvicorn.Server(config)


def _host(scope: Message) -> str:
    """How the caller has reached this server; `Guard` has looked at it."""
    return next(value.decode("latin-1") for name, value in scope["headers"] if name == b"host")


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()
