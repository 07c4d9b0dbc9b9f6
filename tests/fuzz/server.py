"""A server on loopback that answers what a case says, and nothing else."""

from __future__ import annotations

import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

SHA = "a3c1f0e5b7d94c2e8f6a1b0d3e5c7f9a2b4d6e8f"


class _Handler(BaseHTTPRequestHandler):
    """Answers come from the folder `answers` of the case that the path names first."""

    cases: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        _, case, path = unquote(urlsplit(self.path).path).split("/", 2)
        body = self._answer(self.cases / case / "answers", f"/{path}".replace(f"{SHA}/", ""))
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", SHA)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body or b"")

    do_POST = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""

    def _answer(self, answers: Path, path: str) -> bytes | None:
        for file in sorted(answers.iterdir(), key=lambda one: -len(one.name)):
            if path.startswith(unquote(file.name)):
                return file.read_bytes()
        return None


def serve(cases: Path) -> tuple[int, str]:
    """Start it in a process of its own, which ends with this one.

    Args:
        cases: Folder of the folders of cases.

    Returns:
        The process, and its address.
    """
    handler = type("Handler", (_Handler,), {"cases": cases})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    parent = os.getpid()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        server.timeout = 1
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        while os.getppid() == parent:
            server.handle_request()
        os._exit(0)
    server.server_close()
    return child, address
