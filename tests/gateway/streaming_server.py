"""An engine that streams while the file named by its variable BUSY is there.

Its metrics are the file that METRICS names; it has none without that variable.
"""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAUSE_SECONDS = 0.05


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""

    def do_GET(self) -> None:
        if self.path == "/metrics" and (file := os.environ.get("METRICS")):
            return self._send("text/plain; version=0.0.4", Path(file).read_bytes())
        listing = {"object": "list", "data": [{"id": self.name, "object": "model"}]}
        return self._answer(listing if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body.get("stream"):
            return self._stream()
        choice = {"index": 0, "text": "ok", "finish_reason": "length"}
        message = {"role": "assistant", "content": "ok"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return self._answer({"choices": [choice | {"message": message}], "usage": usage})

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        while Path(os.environ["BUSY"]).exists():
            self.wfile.write(b'data: {"token": 1}\n\n')
            time.sleep(PAUSE_SECONDS)
        self.wfile.write(b"data: [DONE]\n\n")

    def _answer(self, content: object) -> None:
        self._send("application/json", json.dumps(content).encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = ArgumentParser()
    for option in ("--host", "--port", "--served-model-name"):
        parser.add_argument(option)
    given, _ = parser.parse_known_args()
    Handler.name = given.served_model_name
    ThreadingHTTPServer((given.host, int(given.port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
