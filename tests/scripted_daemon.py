"""A Docker daemon whose answers a test writes down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moorage.inventory.access import Access
from tests.waiting import PATIENCE_SECONDS

SILENT = None
"""An answer that never comes."""

DOCKER: dict[str, Any] = {"Components": [{"Name": "Engine"}]}
Answer = tuple[int, Any] | None


def framed(output: str, size: int | None = None) -> bytes:
    """A container's output as one frame of its log."""
    data = output.encode()
    return b"\x01\0\0\0" + (len(data) if size is None else size).to_bytes(4) + data


class ScriptedDaemon:
    """A daemon that runs one container.

    Attributes:
        answers: Its answers by verb and end of the path, which a test may replace; of a list the
            next one.
        asked: The requests; `paths` are whole, `bodies` are of those that have one.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "GET version": (200, DOCKER),
            "POST create": (201, {"Id": "c0ffee"}),
            "POST start": (204, b""),
            "POST wait": (200, {"StatusCode": 0}),
            "GET json": (200, {}),
            "GET logs": (200, framed("done\n")),
            "DELETE c0ffee": (204, b""),
        }
        self.asked: list[str] = []
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.ended = threading.Event()

    def answer(self, verb: str, path: str, body: bytes) -> Answer:
        what = f"{verb} {path.partition('?')[0].rpartition('/')[2]}"
        self.asked.append(what)
        self.paths.append(path)
        self.bodies += [json.loads(body)] if body else []
        answer = self.answers[what]
        chosen: Answer = answer.pop(0) if isinstance(answer, list) else answer
        return chosen

    @property
    def created(self) -> dict[str, Any]:
        """The configuration of its container."""
        (config,) = self.bodies
        return {**config, **config["HostConfig"]}


@contextmanager
def serving(daemon: ScriptedDaemon) -> Iterator[Access]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = daemon.answer(self.command, self.path, body)
            if answer is SILENT:
                daemon.ended.wait(PATIENCE_SECONDS)
                self.close_connection = True
                return
            status, content = answer
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Access(address=f"tcp://127.0.0.1:{server.server_port}")
        daemon.ended.set()
        server.shutdown()
