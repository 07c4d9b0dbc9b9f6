"""An engine that answers chats immediately in OpenAI's format, as a separate process.

python -m benchmarks.instant_engine PORT
"""

import asyncio
import json
import sys

MODEL, CHAT = "tiny", "/v1/chat/completions"
TOKENS = 100
"""Tokens of a stream."""

TOKEN_SECONDS = 0.02
"""Pause between the tokens of a stream, so that each token is sent separately."""


def _body(kind: str, choice: dict[str, object]) -> dict[str, object]:
    return {"id": "chat-1", "object": kind, "created": 1, "model": MODEL, "choices": [choice]}


def _completion() -> dict[str, object]:
    message = {"role": "assistant", "content": "word"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    return {**_body("chat.completion", choice), "usage": usage}


ANSWERS: dict[str, dict[str, object]] = {
    CHAT: _completion(),
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]},
    "/health": {},
}


async def serve(port: int) -> None:
    """Serve on a port of this machine forever."""
    server = await asyncio.start_server(_answer_all, "127.0.0.1", port)
    await server.serve_forever()


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The path and the body of the next request."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines if line)
    return first.split(" ")[1], await reader.readexactly(int(headers.get("content-length", 0)))


def write_json(writer: asyncio.StreamWriter, status: str, answer: dict[str, object]) -> None:
    """Write an answer with a body of JSON."""
    content = json.dumps(answer).encode()
    _write_head(writer, status, "application/json", f"content-length: {len(content)}")
    writer.write(content)


async def _answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            path, body = await read_request(reader)
            if path == CHAT and json.loads(body).get("stream"):
                await _stream(writer)
            elif path in ANSWERS:
                write_json(writer, "200 OK", ANSWERS[path])
            else:
                # vllm-router requests the tokens of each prompt, and works without them.
                write_json(writer, "404 Not Found", {"error": {"message": "no such path"}})
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _stream(writer: asyncio.StreamWriter) -> None:
    _write_head(writer, "200 OK", "text/event-stream", "transfer-encoding: chunked")
    for at in range(TOKENS):
        reason = "stop" if at == TOKENS - 1 else None
        choice = {"index": 0, "delta": {"content": " word"}, "finish_reason": reason}
        _write_event(writer, json.dumps(_body("chat.completion.chunk", choice)))
        await writer.drain()
        await asyncio.sleep(TOKEN_SECONDS)
    _write_event(writer, "[DONE]")
    writer.write(b"0\r\n\r\n")


def _write_head(writer: asyncio.StreamWriter, status: str, kind: str, length: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode())


def _write_event(writer: asyncio.StreamWriter, text: str) -> None:
    event = f"data: {text}\n\n".encode()
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
