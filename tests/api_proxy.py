"""A proxy in front of a Prefect server that returns wrong answers from a chosen request on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

HEAD_BYTES = 65_536
END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    """An answer in place of the server's; `status` 0 = the connection is dropped."""

    status: int
    body: bytes = b'{"detail": "no"}'
    content_type: str = "application/json"

    @property
    def written(self) -> bytes:
        head = (
            f"HTTP/1.1 {self.status} Told\r\nContent-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + self.body


ANSWERS = {
    "401": Answer(401),
    "404": Answer(404),
    "409": Answer(409),
    "422": Answer(422, b'{"detail": [{"loc": ["body"], "msg": "no"}]}'),
    "500": Answer(500, b"Internal Server Error", "text/plain"),
    "503": Answer(503, b'{"detail": "the database is locked"}'),
    "cut JSON": Answer(200, b'{"id": "12'),
    "other JSON": Answer(200, b'{"surprise": [1, 2, 3]}'),
    "a page": Answer(200, b"<html><body>Sign in</body></html>", "text/html"),
    "nothing": Answer(0),
}


def always(_method: str, _path: str, _body: bytes) -> bool:
    """Break from the first request on."""
    return True


Moment = Callable[[str, str, bytes], bool]
"""Whether a request (method, path, beginning of the body) is the first one with a wrong answer."""


@dataclass
class ApiProxy:
    """Forwards requests to a server until `since` returns true; then it sends `answer`.

    Attributes:
        upstream: URL of the server's API.
        answer: The answer from then on.
        since: Whether the proxy breaks at a request; not called after the first true.
        is_broken: Whether the proxy is broken.
        refused: Requests that were not forwarded.
    """

    upstream: str
    answer: Answer
    since: Moment
    is_broken: bool = False
    refused: list[str] = field(default_factory=list)

    def __enter__(self) -> ApiProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def url(self) -> str:
        """The URL of the API for commands."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/api"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if not (request := _request(client)):
                return
            head, _, body = request.partition(END_OF_HEAD)
            method, path, _ = head.split(b"\r\n")[0].decode().split(" ", 2)
            self.is_broken = self.is_broken or self.since(method, path, body)
            if self.is_broken:
                self.refused.append(f"{method} {path}")
                if self.answer.status:
                    client.sendall(self.answer.written)
                return
            self._hand_on(client, _alone(head) + END_OF_HEAD + body)

    def _hand_on(self, client: socket.socket, request: bytes) -> None:
        parts = urlsplit(self.upstream)
        with socket.create_connection((parts.hostname or "", parts.port or 80)) as server:
            server.sendall(request)
            threading.Thread(target=_pipe, args=(client, server), daemon=True).start()
            _pipe(server, client)


def _request(client: socket.socket) -> bytes:
    """A request with its whole body; the head only for a websocket."""
    read = b""
    while END_OF_HEAD not in read and len(read) < HEAD_BYTES:
        if not (part := client.recv(65_536)):
            return b""
        read += part
    head, _, body = read.partition(END_OF_HEAD)
    length = next((int(v) for k, v in _headers(head) if k == b"content-length"), 0)
    while len(body) < length:
        if not (part := client.recv(65_536)):
            return b""
        body += part
    return head + END_OF_HEAD + body


def _headers(head: bytes) -> list[tuple[bytes, bytes]]:
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def _alone(head: bytes) -> bytes:
    """The head with `Connection: close`, so that the proxy sees each request."""
    if any(name == b"upgrade" for name, _ in _headers(head)):
        return head
    lines = [one for one in head.split(b"\r\n") if not one.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close"])


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
