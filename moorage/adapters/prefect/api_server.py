"""A Prefect server that answers under its own names alone, and no page of another origin.

Prefect has no setting for the names that it answers to. A name that an attacker has in the DNS may
point here too (DNS rebinding), and then a browser takes the attacker's page for one of this server.

A program of its own that needs no package but Prefect: compose.yaml runs it in Prefect's image.
"""

import argparse
import gc
import ipaddress
import os
import re
import signal
import threading
import time
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?", re.IGNORECASE)
REFUSED_STATUS, REFUSED_SOCKET = 403, 1008
NO_FRAMES = (
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
)
"""Headers that forbid other pages to embed this page, where users would click unaware."""


class IdleWatch:
    """Stops the server after `seconds` without a request; the count begins when it can answer.

    Health requests do not count.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds
        self._open, self._last = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, self._watched(send))
        if scope["path"].endswith("/health"):
            return await self._app(scope, receive, send)
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
            self._last = time.monotonic()

    def _watched(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._last = time.monotonic()
                threading.Thread(target=self._watch, daemon=True).start()
            await send(message)

        return sent

    def _watch(self) -> None:
        while self._open or time.monotonic() - self._last < self._seconds:
            time.sleep(min(self._seconds / 10, 10.0))
        os.kill(os.getpid(), signal.SIGTERM)


class Guard:
    """Refuses requests that a foreign page may have sent; passes on all others.

    Args:
        hosts: Names of this server in addition to `localhost`.
        origins: Origins of pages that may send requests, such as `https://prefect.example.com`.
        exposed: Whether requests may name any address of the server, because other machines reach
            it. Unlike a name, an address cannot be rebound.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], origins: Collection[str], *, exposed: bool
    ) -> None:
        self._app, self._origins, self._exposed = app, frozenset(origins), exposed
        self._hosts = frozenset(name.lower() for name in (*hosts, "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif reason := self.refusal(scope["headers"]):
            await _refuse(scope["type"], reason, send)
        else:
            await self._app(scope, receive, _unframed(send))

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The reason to refuse a request; empty = it is accepted."""
        found: dict[bytes, list[str]] = {b"host": [], b"origin": []}
        for name, value in headers:
            if name.lower() in found:
                found[name.lower()].append(value.decode("latin-1").lower())
        hosts, origins = found[b"host"], found[b"origin"]
        if len(hosts) != 1 or not self._is_mine(hosts[0]):
            return "this server does not answer to that Host"
        if any(one not in self._origins and urlsplit(one).netloc != hosts[0] for one in origins):
            return "pages of that Origin may not use this server"
        return ""

    def _is_mine(self, host: str) -> bool:
        matched = ADDRESS.fullmatch(host)
        if not matched:
            return False
        name = matched[1].strip("[]")
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return self._exposed or address.is_loopback


def own_origins(port: int) -> list[str]:
    """The origins of this server's pages on its own machine."""
    return [f"http://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")]


def serve(host: str, port: int, names: Collection[str], idle_seconds: float = 0) -> None:
    """Serve Prefect's API, pages and services, under `names` and `localhost`.

    A signal stops the server, and so do `idle_seconds` without a request, unless they are 0.
    """
    import uvicorn  # noqa: PLC0415  (with Prefect it takes seconds, and Guard needs neither)
    from prefect.server.api.server import create_app  # noqa: PLC0415
    from prefect.settings import (  # noqa: PLC0415
        PREFECT_SERVER_CORS_ALLOWED_ORIGINS,
        get_current_settings,
        temporary_settings,
    )

    from moorage.adapters.prefect.parameter_errors import patch_parameter_errors  # noqa: PLC0415

    settings = get_current_settings().server
    named = [one.strip() for one in settings.api.cors_allowed_origins.split(",")]
    origins = [one for one in named if one not in ("", "*")] or own_origins(port)
    with (
        temporary_settings({PREFECT_SERVER_CORS_ALLOWED_ORIGINS: ",".join(origins)}),
        _sqlite_writers_in_turn(),
    ):
        patch_parameter_errors()
        guarded: ASGIApp = Guard(
            create_app(final=True), names, origins, exposed=not _is_loopback(host)
        )
        uvicorn.run(
            IdleWatch(guarded, idle_seconds) if idle_seconds else guarded,
            host=host,
            port=port,
            timeout_keep_alive=settings.api.keepalive_timeout,
            ws_ping_interval=settings.api.websocket_ping_interval,
            ws_ping_timeout=settings.api.websocket_ping_timeout,
            log_level=settings.logging_level.lower(),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve with these arguments; None = the arguments of this process."""
    # The modules imported from here on stay. Collecting garbage among them as often as by default
    # would take a tenth of the start.
    gc.set_threshold(10_000, 20, 20)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=4200)
    parser.add_argument("--name", action="append", default=[], help="another name of this server")
    parser.add_argument("--idle-seconds", type=float, default=0, help="0 = it never ends")
    given = parser.parse_args(arguments)
    serve(given.host, given.port, given.name, given.idle_seconds)


@contextmanager
def _sqlite_writers_in_turn() -> Iterator[None]:
    """Make SQLite's writers wait for each other.

    Prefect begins them as readers. A reader whose data another writer has meanwhile changed may not
    write any more: the API answers 503 at once when several flow runs are created together.
    PostgreSQL has no such rule.
    """
    from prefect.server.database.configurations import AioSqliteConfiguration  # noqa: PLC0415
    from prefect.server.database.dependencies import (  # noqa: PLC0415
        provide_database_interface,
        temporary_database_config,
    )
    from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction  # noqa: PLC0415

    class InTurn(AioSqliteConfiguration):
        @asynccontextmanager
        async def begin_transaction(
            self,
            session: AsyncSession,
            with_for_update: bool = False,  # noqa: ARG002
        ) -> AsyncGenerator[AsyncSessionTransaction]:
            async with super().begin_transaction(session, with_for_update=True) as transaction:
                yield transaction

    configured = provide_database_interface().database_config
    if not isinstance(configured, AioSqliteConfiguration):
        yield
        return
    with temporary_database_config(InTurn(connection_url=configured.connection_url)):
        yield


def _is_loopback(host: str) -> bool:
    """As `moorage.inventory.access.is_loopback`, which this program cannot import."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def _refuse(kind: str, reason: str, send: Send) -> None:
    if kind == "websocket":
        await send({"type": "websocket.close", "code": REFUSED_SOCKET, "reason": reason})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *NO_FRAMES]
    await send({"type": "http.response.start", "status": REFUSED_STATUS, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})


def _unframed(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *NO_FRAMES]}
        await send(message)

    return sent


if __name__ == "__main__":
    main()
