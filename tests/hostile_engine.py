"""An engine that misbehaves, on raw sockets. In a test: `with HostileEngine("drips") as engine`.

The module is also a program that needs only the standard library, accepts the options of vLLM, and
serves a model correctly. The variable `HOSTILE` names a file; once the file exists, its first line
names the misbehaviour from then on, and its second line the path.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

MIB = 1024**2
DEEP = 200_000
OK = b"HTTP/1.1 200 OK\r\n"
FOREVER = 10**9
END_SECONDS = 5

Pieces = Iterator[bytes]


@functools.cache
def _bomb() -> bytes:
    """A body that decompresses to 100 MiB, built in pieces: a test measures this process."""
    packing = zlib.compressobj(wbits=31)
    pieces = [packing.compress(bytes(MIB)) for _ in range(100)]
    return gzip.compress(b"".join([*pieces, packing.flush()]))


def _answer(body: bytes, *headers: bytes) -> Pieces:
    yield OK + b"".join(b"%s\r\n" % one for one in headers)
    yield b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def _repeat(piece: bytes, head: bytes = b"") -> Pieces:
    yield head
    for _ in range(FOREVER):
        yield piece


def _chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


REFUSED = b"HTTP/1.1 404 Not Found\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"

MISBEHAVIOURS: dict[str, Callable[[], Pieces]] = {
    # Answers without an end.
    "sends for ever": lambda: _repeat(b"x" * MIB, OK + b"\r\n"),
    "promises 10 GB": lambda: _repeat(b"x" * MIB, OK + b"Content-Length: 10000000000\r\n\r\n"),
    "sends chunks for ever": lambda: _repeat(_chunk(b"x" * MIB), CHUNKED),
    "extends its chunks": lambda: _repeat(b";" + b"x" * MIB, CHUNKED + b"1"),
    "extends each chunk": lambda: _repeat(_chunk(b"x", b";" + b"x" * 60_000), CHUNKED),
    "says continue for ever": lambda: _repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "never ends its status": lambda: _repeat(b"x" * MIB, b"HTTP/1.1 200 "),
    "never ends a header": lambda: _repeat(b"x" * MIB, OK + b"A: "),
    "sends headers for ever": lambda: _repeat(b"A: b\r\n" * 1000, OK),
    "sends trailers for ever": lambda: _repeat(b"A: b\r\n" * 1000, CHUNKED + b"0\r\n"),
    # Answers that drip, a byte at a time: see `DRIPPING`.
    "drips its body": lambda: _repeat(b"x", OK + b"Content-Length: 1000\r\n\r\n"),
    "drips its refusal": lambda: _repeat(b"x", REFUSED + b"Content-Length: 1000\r\n\r\n"),
    "drips a body without a length": lambda: _repeat(b"x", OK + b"\r\n"),
    "drips its headers": lambda: _repeat(b"x", OK + b"A: "),
    "drips its status": lambda: _repeat(b"x", b"HTTP/1.1 200 "),
    "drips chunks": lambda: _repeat(_chunk(b"x"), CHUNKED),
    "says nothing": lambda: _repeat(b""),
    # Endless redirects.
    "redirects": lambda: iter([b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"]),
    # Invalid answers.
    "ends too soon": lambda: iter([OK + b"Content-Length: 100\r\n\r\nshort"]),
    "has a negative length": lambda: iter([OK + b"Content-Length: -1\r\n\r\n{}"]),
    "has two lengths": lambda: iter([OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"]),
    "has a length that is a word": lambda: iter([OK + b"Content-Length: many\r\n\r\n{}"]),
    "speaks HTTP 0.9": lambda: iter([b"\x1b[2J<html>" + b"\x00\xff" * 500]),
    "switches protocols": lambda: iter([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"]),
    "hangs up": lambda: iter(()),
    "sends a bomb": lambda: iter([GZIP % (len(_bomb()), _bomb())]),
    "sends no UTF-8": lambda: _answer(b"\xff\xfe\x00\x80"),
    "sends escapes": lambda: _answer(b'{"a": "\\u001b[2J\\u202e"}'),
    # Deeply nested, huge or invalid JSON.
    "nests lists": lambda: _answer(b"[" * DEEP + b"]" * DEEP),
    "nests objects": lambda: _answer(b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "never closes a list": lambda: _answer(b"[" * DEEP),
    "lists a million": lambda: _answer(b'{"data":[' + b"{}," * 10**6 + b"{}]}"),
    "counts beyond measure": lambda: _answer(b'{"data": ' + b"9" * 100_000 + b"}"),
    "counts to infinity": lambda: _answer(b'{"data": 1e999}'),
    "counts nothing": lambda: _answer(b'{"data": NaN}'),
    "sends half a character": lambda: _answer(b'{"data": "\\ud800"}'),
}
DRIPPING = ("drips ", "says nothing")

COMPLETION = json.dumps(
    {
        "choices": [{"text": "a", "message": {"content": "a"}, "finish_reason": "stop"}],
        "usage": {"completion_tokens": 1},
    }
).encode()
SANE = {
    "/health": b"",
    "/version": b'{"version": "1"}',
    "/metrics": b"vllm:num_requests_running 0\n",
    "/v1/chat/completions": COMPLETION,
    "/v1/completions": COMPLETION,
}


class HostileEngine:
    """A server that misbehaves until it is closed.

    Args:
        misbehaviour: One of `MISBEHAVIOURS`; empty = correct answers.
        path: The only path with the misbehaviour; empty = all paths.
        name: The served model.
        port: Port on which it listens; 0 = any free port.
        pause: Seconds between dripped bytes.

    Attributes:
        requests: First lines of the requests that it received.
    """

    def __init__(
        self,
        misbehaviour: str,
        path: str = "",
        *,
        name: str = "tiny",
        port: int = 0,
        pause: float = 0.02,
    ) -> None:
        self.misbehaviour, self.path = misbehaviour, path
        self._name, self._pause = name, pause
        self._closed = threading.Event()
        self._server = socket.create_server(("127.0.0.1", port), backlog=64)
        self.requests: list[str] = []
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> HostileEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._closed.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # close() alone would not wake `accept`
        self._server.close()
        for thread in self._threads:
            thread.join(END_SECONDS)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                if not (piece := connection.recv(65536)):
                    return
                request += piece
            line = request.partition(b"\r\n")[0].decode()
            self.requests.append(line)
            path = line.split()[1]
            hostile = self.misbehaviour and self.path in ("", path)
            drips = hostile and self.misbehaviour.startswith(DRIPPING)
            pieces = MISBEHAVIOURS[self.misbehaviour]() if hostile else self._sane(path)
            for piece in pieces:
                if self._closed.wait(self._pause if drips else 0):
                    return
                connection.sendall(piece)
            # An immediate close with unread bytes of the request would send a reset.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    def _sane(self, path: str) -> Pieces:
        if path == "/v1/models":
            return _answer(json.dumps({"data": [{"id": self._name}]}).encode())
        if path in SANE:
            return _answer(SANE[path])
        return iter([b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"])


def main() -> None:
    """Serve until the process is killed."""
    options = dict(zip(sys.argv, sys.argv[1:], strict=False))
    engine = HostileEngine(
        "", name=options["--served-model-name"], port=int(options["--port"]), pause=0.5
    )
    hostile = Path(os.environ["HOSTILE"])
    while True:
        if hostile.exists():
            engine.misbehaviour, engine.path = hostile.read_text().splitlines()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
