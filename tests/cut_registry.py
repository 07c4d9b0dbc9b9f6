"""A proxy to a registry that cuts the connection inside large blobs, a given number of times."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.local_registry import LocalRegistry

PASSED_ON = ("content-type", "content-range", "docker-content-digest", "location")


class CutRegistry:
    """A proxy in front of a registry.

    Args:
        registry: The registry behind it.
        cuts: How many answers are cut.
        after: Bytes of a cut answer that arrive; smaller answers are not cut.
    """

    def __init__(self, registry: LocalRegistry, cuts: int, after: int) -> None:
        self._registry, self._cuts, self._after = registry, cuts, after
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                outer._pass(self)

            def do_GET(self) -> None:
                outer._pass(self)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the proxy."""
        self._server.shutdown()
        self._server.server_close()

    def _pass(self, request: BaseHTTPRequestHandler) -> None:
        wanted = [(name, text) for name, text in request.headers.items() if name != "Host"]
        url = f"http://{self._registry.host}{request.path}"
        answer = httpx.request(request.command, url, headers=wanted)
        request.send_response(answer.status_code)
        for name in PASSED_ON:
            if name in answer.headers:
                request.send_header(name, answer.headers[name])
        request.send_header("Content-Length", answer.headers.get("content-length", "0"))
        request.end_headers()
        if self._is_cut(len(answer.content)):
            request.wfile.write(answer.content[: self._after])
            request.wfile.flush()
            request.connection.shutdown(socket.SHUT_RDWR)
            request.close_connection = True
        else:
            request.wfile.write(answer.content)

    def _is_cut(self, size: int) -> bool:
        with self._lock:
            cut = size > self._after and self._cuts > 0
            self._cuts -= cut
        return cut
