"""HTTP servers of tests, in this process."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

POLL_SECONDS = 0.01
"""How long the end of a server takes at most."""


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler],
    address: str = "127.0.0.1",
    trust: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """Answer requests on a free port in the block; yields the port."""
    with ThreadingHTTPServer((address, 0), handler) as server:
        if trust:
            # A client that distrusts the certificate ends the handshake.
            server.handle_error = lambda *_: None  # type: ignore[method-assign]
            server.socket = trust.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
