"""Serves metrics and targets over HTTP, for Prometheus and not for web pages.

Answers contain no secrets, but names of models and hosts, so by default the server listens on the
loopback. `Guard` refuses web pages whose name was rebound in the DNS. A connection gets one answer;
it is closed after `REQUEST_SECONDS` without a request, and in any case after `WHOLE_SECONDS`. There
are at most `AT_ONCE` connections, and the ledger is read for one request at a time.
"""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Collection
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import Message, Receive, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from moorage.adapters.hosts.reachability import listen
from moorage.adapters.metrics.exporter import Exporter, written
from moorage.adapters.prefect.api_server import Guard
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import is_loopback
from moorage.operations.metrics.targets import GATEWAY_PATH

REQUEST_SECONDS = 5.0
"""Limit for the arrival of a request's headers; its body is not read."""

WHOLE_SECONDS = 60.0
"""Limit for a request and its answer; the first request reads the ledger's whole history."""

AT_ONCE = 16
"""Most connections; further ones are cut at once, since each takes a descriptor of the process."""

Answer = tuple[int, str, bytes]
"""Status, content type and body."""

TEXT = "text/plain; charset=utf-8"


class MetricsApp:
    """The ASGI application."""

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
        """Function that makes the answer for a path; None = unknown path."""
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
    """A connection with limits on its number and time, whatever the client does."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limits; cut the connection if there are too many."""
        super().connection_made(transport)
        self._ends = (
            self.loop.call_later(REQUEST_SECONDS, self._abort_without_request),
            self.loop.call_later(WHOLE_SECONDS, transport.abort),
        )
        if len(self.connections) > AT_ONCE:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limits."""
        for end in self._ends:
            end.cancel()
        super().connection_lost(exc)

    def _abort_without_request(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class MetricsServer:
    """The server; it listens as soon as it is created.

    Args:
        names: Host names that it answers to, in addition to those of the loopback.

    Raises:
        Failure: `PORT_TAKEN` when it cannot listen at the address.
    """

    def __init__(self, exporter: Exporter, host: str, port: int, names: Collection[str]) -> None:
        app: Any = Guard(MetricsApp(exporter), names, (), exposed=not is_loopback(host))
        config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            backlog=AT_ONCE,  # this many may be accepted before the first of them is counted
            limit_concurrency=AT_ONCE + 1,  # also counts answers whose caller has left
            log_level="warning",
            access_log=False,
        )
        self._server, self._listener = uvicorn.Server(config), _listen(host, port)

    def run(self) -> None:
        """Serve until a signal stops the server."""
        self._server.run(sockets=[self._listener])

    def start(self) -> None:
        """Serve in a daemon thread."""
        threading.Thread(target=self.run, name="metrics", daemon=True).start()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise Failure(
            Cause.PORT_TAKEN,
            f"metrics cannot be served at {host}:{port}: {error.strerror}",
            suggestion="Choose another port.",
        ) from error


def _host(scope: Message) -> str:
    """Address by which the caller reached this server, already checked by `Guard`."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers[b"host"].decode("latin-1")


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()
