"""An engine that answers at once, streams on request, and says who it is."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Self


class TestEngine:
    """An HTTP server in a thread of its own.

    Args:
        echo: The first event of each stream, before those of its tokens.

    Attributes:
        requests: Path, headers and body of each request that came whole.
    """

    __test__ = False

    def __init__(
        self,
        name: str,
        port: int = 0,
        *,
        tokens: int = 5,
        pause: float = 0.0,
        usage: dict[str, int] | None = None,
        echo: object = None,
    ) -> None:
        self.name, self.tokens, self.pause = name, tokens, pause
        self.usage = usage or {"prompt_tokens": 7, "completion_tokens": tokens}
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._echo = echo
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def bodies(self) -> list[dict[str, object]]:
        return [json.loads(body) for _, _, body in self.requests]

    def _run(self, port: int) -> None:
        asyncio.set_event_loop(self._loop)
        starting = asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**27)
        server = self._loop.run_until_complete(starting)
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        self._server = server
        self._loop.run_forever()

    async def _close(self) -> None:
        """Reset all connections, as the end of a process does."""
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in lines if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append((first.split(" ")[1], headers, body))
                await self._answer(writer, body)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        if not body.startswith(b"{") or not json.loads(body).get("stream"):
            content = json.dumps({"by": self.name, "usage": self.usage}).encode()
            writer.write(_head("application/json", f"content-length: {len(content)}") + content)
            return await writer.drain()
        writer.write(_head("text/event-stream", "transfer-encoding: chunked"))
        if self._echo is not None:
            _write_event(writer, json.dumps(self._echo))
        for at in range(self.tokens):
            _write_event(writer, json.dumps({"by": self.name, "token": at}))
            await writer.drain()
            await asyncio.sleep(self.pause)
        _write_event(writer, json.dumps({"usage": self.usage}))
        _write_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        return await writer.drain()


def _head(kind: str, length: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode()


def _write_event(writer: asyncio.StreamWriter, text: str) -> None:
    event = f"data: {text}\n\n".encode()
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
