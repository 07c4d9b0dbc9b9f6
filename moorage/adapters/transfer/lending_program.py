"""The program that lends a complete model to other hosts; it runs where the model is.

It needs Python's standard library alone. It reads one line of JSON: `folder`, `files` (names),
`bind`, `ports` (the first that is free is taken), `token`, `idle` (seconds without a request after
which it ends), and writes one: `{"port": ...}` or `{"trouble": ...}`.
"""

from __future__ import annotations

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
RANGE = re.compile(r"bytes=(\d+)-")


class Door(ThreadingHTTPServer):
    """Listens for those who have the token."""

    daemon_threads = True

    def __init__(self, told: dict[str, Any], port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in told["bind"] else socket.AF_INET
        self.folder, self.names = told["folder"], set(told["files"])
        self.token, self.idle = told["token"], told["idle"]
        self.busy, self.last = 0, time.monotonic()
        self.lock = threading.Lock()
        super().__init__((told["bind"], port), Asked)

    def server_bind(self) -> None:
        """As any TCP server does: HTTP's own asks a name service whose address it is."""
        TCPServer.server_bind(self)

    def begin(self, step: int) -> None:
        """One more, or one less, is being served."""
        with self.lock:
            self.busy += step
            self.last = time.monotonic()

    def watch(self) -> None:
        """End when nobody has asked for a while: whoever opened it may be gone."""
        while True:
            time.sleep(WATCH_SECONDS)
            with self.lock:
                if not self.busy and time.monotonic() - self.last > self.idle:
                    os._exit(0)


class Asked(BaseHTTPRequestHandler):
    """One request."""

    server: Door
    protocol_version = "HTTP/1.1"
    timeout = SEND_SECONDS

    def do_GET(self) -> None:
        """Send a file, from an offset on."""
        name = urllib.parse.unquote(self.path.lstrip("/"))
        said = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(said, f"Bearer {self.server.token}".encode()):
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
        """It says nothing but its port."""

    def _send(self, content: Any) -> None:
        size = os.fstat(content.fileno()).st_size
        wanted = RANGE.match(self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        if start > size:
            return self._refuse(416)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{max(start, size - 1)}/{size}")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        self.wfile.flush()
        if start < size:
            self.connection.sendfile(content, start)
        return None

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    """Read the order, and lend until nobody asks any more."""
    if not select.select([sys.stdin], [], [], FED_SECONDS)[0]:
        sys.exit("whoever started this told it nothing")
    told = json.loads(sys.stdin.readline())
    door, trouble = None, "no port is free"
    for port in told["ports"]:
        try:
            door = Door(told, port)
            break
        except OSError as error:
            trouble = str(error)
    if door is None:
        print(json.dumps({"trouble": trouble}), flush=True)
        return
    print(json.dumps({"port": door.server_address[1]}), flush=True)
    threading.Thread(target=door.watch, daemon=True).start()
    door.serve_forever()
