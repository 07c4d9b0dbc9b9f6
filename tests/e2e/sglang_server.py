"""A stand-in for `sglang serve`: the real argument parser, and the HTTP of its server.

    python -m tests.e2e.sglang_server WHEEL serve --model-path MODEL ...

It is healthy from the second time on that it is asked, as a server that warms up; its models are
listed at once. An adapter answers to NAME:ADAPTER, with its own name.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from scripts.engine_schemas.sglang import sglang_parser

METRICS = """\
sglang:num_running_reqs{pp_rank="0"} 0.0
sglang:num_queue_reqs{pp_rank="0"} 0.0
sglang:http_requests_active{endpoint="/metrics",method="GET"} 1.0
sglang:http_requests_active{endpoint="/v1/chat/completions",method="POST"} 0.0
"""


class Handler(BaseHTTPRequestHandler):
    """Answers as SGLang 0.5.23 does."""

    name = ""
    requests: Iterable[int] = count()
    adapters: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        if self.path == "/health_generate":
            warm = next(iter(self.requests)) > 0
            self._reply(200 if warm else 503, {})
        elif self.path == "/v1/models":
            listed = [{"id": one, "object": "model"} for one in (self.name, *self.adapters)]
            self._reply(200, {"object": "list", "data": listed})
        elif self.path == "/metrics":
            self._reply(200, METRICS)
        else:
            self._reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path in ("/load_lora_adapter", "/unload_lora_adapter"):
            return self._change(body["lora_name"])
        _, _, adapter = body["model"].partition(":")
        if adapter and adapter not in self.adapters:
            return self._reply(400, {"message": f"LoRA adapters are not loaded: {adapter}"})
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice["message"] = {"role": "assistant", "content": adapter or "ok"}
        return self._reply(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def _change(self, name: str) -> None:
        if self.path == "/load_lora_adapter":
            self.adapters.add(name)
        elif name in self.adapters:
            self.adapters.remove(name)
        else:
            words = f"LoRA with name {name} does not exist. Loaded LoRAs: {sorted(self.adapters)}"
            return self._reply(400, {"success": False, "error_message": words})
        return self._reply(200, {"success": True, "loaded_adapters": sorted(self.adapters)})

    def _reply(self, status: int, answer: Any) -> None:
        body = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    wheel, _, *arguments = sys.argv[1:]
    wanted: argparse.Namespace = sglang_parser(Path(wheel)).parse_args(arguments)
    Handler.name = wanted.served_model_name
    Handler.adapters.update(one["lora_name"] for one in wanted.lora_paths or ())
    ThreadingHTTPServer((wanted.host, wanted.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
