"""The program that lends a complete model to other hosts; it runs where the model is.

It needs Python's standard library alone. It reads one line of JSON: `folder`, `files` (names),
`bind`, `ports` (the first that is free is taken), `token`, `idle` (seconds without a request after
which it ends), and writes one: `{"port": ...}` or `{"trouble": ...}`.
"""

import hmac
import json
import os
import re
import select
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

FED_SECONDS = 60
SEND_SECONDS = 60
WATCH_SECONDS = 1
RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")


class LendingServer(ThreadingHTTPServer):
    """HTTP server for clients that have the token."""

    daemon_threads = True

    def __init__(self, order: dict[str, Any], port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in order["bind"] else socket.AF_INET
        self.folder, self.names = order["folder"], set(order["files"])
        self.token, self.idle = order["token"], order["idle"]
        self.busy, self.last = 0, time.monotonic()
        self.lock = threading.Lock()
        super().__init__((order["bind"], port), LendingRequest)

    def server_bind(self) -> None:
        """Bind without the reverse DNS lookup of `HTTPServer`."""
        TCPServer.server_bind(self)

    def begin(self, step: int) -> None:
        """Count requests in progress: 1 at the start, -1 at the end."""
        with self.lock:
            self.busy += step
            self.last = time.monotonic()

    def watch(self) -> None:
        """End after a time without requests: the process that started it may be gone."""
        while True:
            time.sleep(WATCH_SECONDS)
            with self.lock:
                if not self.busy and time.monotonic() - self.last > self.idle:
                    os._exit(0)


class LendingRequest(BaseHTTPRequestHandler):
    """One request."""

    server: LendingServer
    protocol_version = "HTTP/1.1"
    timeout = SEND_SECONDS
    disable_nagle_algorithm = True  # else a small body waits 40 ms for the receipt of its head

    def do_GET(self) -> None:
        """Send a file, or a range of it."""
        name = urllib.parse.unquote(self.path.lstrip("/"))
        token_sent = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(token_sent, f"Bearer {self.server.token}".encode()):
            return self._refuse(401)
        if name not in self.server.names:
            return self._refuse(404)
        self.server.begin(1)
        try:
            with open(os.path.join(self.server.folder, name), "rb") as content:
                self._send(content)
        except FileNotFoundError:
            self._refuse(404)
        except OSError:
            self.close_connection = True
        finally:
            self.server.begin(-1)

    def log_message(self, *_: object) -> None:
        """Log nothing: the only output is the port."""

    def _send(self, content: Any) -> None:
        size = os.fstat(content.fileno()).st_size
        wanted = RANGE.match(self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        stop = min(int(wanted[2]) + 1, size) if wanted and wanted[2] else size
        if start > size or stop < start:
            return self._refuse(416)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{max(start, stop - 1)}/{size}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.flush()
        if start < stop:
            self.connection.sendfile(content, start, stop - start)
        return None

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    """Read the order, and serve until no more requests come."""
    if not select.select([sys.stdin], [], [], FED_SECONDS)[0]:
        sys.exit("no order arrived on standard input")
    order = json.loads(sys.stdin.readline())
    server, trouble = None, "no port is free"
    for port in order["ports"]:
        try:
            server = LendingServer(order, port)
            break
        except OSError as error:
            trouble = str(error)
    if server is None:
        print(json.dumps({"trouble": trouble}), flush=True)
        return
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    threading.Thread(target=server.watch, daemon=True).start()
    server.serve_forever()
