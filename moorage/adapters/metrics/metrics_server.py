"""Serves metrics and targets over HTTP, to Prometheus and to no web page.

What it answers holds no secret, but the names of models and hosts, so that it listens on the
loopback unless it is told otherwise. `Guard` keeps away pages whose name was rebound in the DNS. A
connection gets one answer. It ends after `REQUEST_SECONDS` without a request, and in any case after
`WHOLE_SECONDS`. There are at most `AT_ONCE` of them, and the ledger is read for one at a time.
"""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Collection
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from uvicorn.protocols.http.h11_impl import H11Protocol

from moorage.adapters.metrics.exporter import Exporter, written
from moorage.adapters.prefect.api_server import Guard, Message, Receive, Send
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import is_loopback
from moorage.operations.metrics.targets import GATEWAY_PATH

REQUEST_SECONDS = 5.0
"""Limit until the headers of a request are there; its body is not read."""

WHOLE_SECONDS = 60.0
"""Limit for a request and its answer; the first one reads the whole history of the ledger."""

AT_ONCE = 16
"""Connections. One more is cut at once: each takes a descriptor of the process, `moorage serve`."""

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
    """One of a few connections, which ends in time, whatever the other side does."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and count the time; end at once where there are enough others."""
        super().connection_made(transport)
        self._ends = (
            self.loop.call_later(REQUEST_SECONDS, self._abort_without_request),
            self.loop.call_later(WHOLE_SECONDS, transport.abort),
        )
        if len(self.connections) > AT_ONCE:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        for end in self._ends:
            end.cancel()
        super().connection_lost(exc)

    def _abort_without_request(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class MetricsServer:
    """The server; it listens from the beginning.

    Args:
        exporter: What it reads.
        names: Host names that it answers to, besides those of the loopback.

    Raises:
        Failure: `PORT_TAKEN` when it cannot listen there.
    """

    def __init__(self, exporter: Exporter, host: str, port: int, names: Collection[str]) -> None:
        app: Any = Guard(MetricsApp(exporter), names, (), exposed=not is_loopback(host))
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            backlog=AT_ONCE,  # as many may be accepted before the first of them is counted
            limit_concurrency=AT_ONCE + 1,  # for answers to callers that did not wait for them
            log_level="warning",
            access_log=False,
        )
        self._server, self._listener = uvicorn.Server(config), _listen(host, port)

    def run(self) -> None:
        """Serve until a signal ends it."""
        self._server.run(sockets=[self._listener])

    def start(self) -> None:
        """Serve in a thread that ends with the process."""
        threading.Thread(target=self.run, name="metrics", daemon=True).start()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise Failure(
            Cause.PORT_TAKEN,
            f"metrics cannot be served at {host}:{port}: {error.strerror}",
            suggestion="Choose another port.",
        ) from error


def _host(scope: Message) -> str:
    """How the caller has reached this server; `Guard` has looked at it."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers[b"host"].decode("latin-1")


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()
