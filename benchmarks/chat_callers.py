"""Callers of a chat address, each on one connection."""

import asyncio
import json
import time
from collections.abc import Mapping

from benchmarks.instant_engine import MODEL


async def ask_all(port: int, key: str, count: int, callers: int) -> list[float]:
    """The seconds for each whole answer, of several callers at a time."""
    parts = await asyncio.gather(*(_ask(port, key, count // callers) for _ in range(callers)))
    return [seconds for part in parts for seconds in part]


async def stream_all(port: int, key: str, callers: int) -> tuple[int, list[float]]:
    """One stream for each caller, at the same time.

    Returns:
        Number of events, and the seconds until the first event of each stream.
    """
    streams = await asyncio.gather(*(_stream(port, key) for _ in range(callers)))
    return sum(events for events, _ in streams), [first for _, first in streams]


async def _ask(port: int, key: str, count: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request, found = _request(key, stream=False), []
    for _ in range(count):
        begun = time.perf_counter()
        writer.write(request)
        headers = await _headers(reader)
        if "chunked" in headers.get("transfer-encoding", ""):
            while await _chunk(reader):
                pass
        else:
            await reader.readexactly(int(headers["content-length"]))
        found.append(time.perf_counter() - begun)
    writer.close()
    return found


async def _stream(port: int, key: str) -> tuple[int, float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begun, first, events = time.perf_counter(), 0.0, 0
    writer.write(_request(key, stream=True))
    await _headers(reader)
    while chunk := await _chunk(reader):
        first = first or time.perf_counter() - begun
        events += chunk.count(b'"content":" word"') + chunk.count(b'"content": " word"')
    writer.close()
    return events, first


def _request(key: str, *, stream: bool) -> bytes:
    messages = [{"role": "user", "content": "x" * 500}]
    body = json.dumps({"messages": messages, "stream": stream, "model": MODEL}).encode()
    given = f"authorization: Bearer {key}\r\n" if key else ""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n{given}"
    kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return f"{head}{kind}".encode() + body


async def _headers(reader: asyncio.StreamReader) -> Mapping[str, str]:
    """The headers of an answer; raises unless its status is 200."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    if " 200 " not in f"{first} ":
        raise ConnectionError(f"{first}: {(await reader.read(300)).decode(errors='replace')}")
    return dict(line.split(": ", 1) for line in lines if line)


async def _chunk(reader: asyncio.StreamReader) -> bytes:
    """The next chunk of a body; empty at its end."""
    size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
    return (await reader.readexactly(size + 2))[:size]
