"""Streamed text of an engine: server-sent events, with one deadline and a limit on bytes.

An engine may be faulty or hostile: the deadline holds however slowly the engine sends, the limit
however much it sends, and an event that is not valid JSON is an error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import httpx

from moorage.adapters.engines.engine_http import (
    GATEWAY_ERRORS,
    Late,
    Question,
    Unreachable,
    Unusable,
    trust_for,
)
from moorage.adapters.secrets import redact
from moorage.adapters.system.timed_http import TimedBackend
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import human_bytes
from moorage.readiness.protocol import MOST_BYTES

PAUSE_SECONDS = 60.0
"""Default limit between two pieces of an answer, and until the first piece."""

END = b"[DONE]"
TOO_SLOW = "no whole answer in time"
MOST_SHOWN = 300

THOUGHTS = ("reasoning", "reasoning_content")
"""Fields in which engines send what a model thinks; some send the same in both."""


def stream_text(
    question: Question,
    seconds: float,
    most: int = MOST_BYTES,
    *,
    pause: float = PAUSE_SECONDS,
    usage: dict[str, Any] | None = None,
    on_thought: Callable[[str], None] | None = None,
) -> Iterator[str]:
    """Yield the pieces of a generated text as they arrive.

    An engine that does not stream answers with one piece.

    Args:
        question: A request for a chat or a completion with `"stream": true`.
        seconds: Limit for the whole answer.
        pause: Limit between two pieces, and until the first piece.
        usage: Filled with the `usage` that the engine sends, if any.
        on_thought: Called with each piece of what the model thinks, which is no part of the answer.

    Raises:
        NoAnswer: `Unreachable`, `Late` or `Unusable`.
    """
    pause, deadline = min(pause, seconds), time.monotonic() + seconds
    try:
        with _client(question.url, seconds, pause) as client, _send(client, question) as response:
            reader = TextReader(response, most, usage, on_thought=on_thought)
            for piece in response.iter_raw():
                yield from reader.feed(piece)
            yield from reader.end()
    except httpx.TimeoutException:
        why = f"nothing came for {pause:g} s" if time.monotonic() < deadline else TOO_SLOW
        raise Late(why) from None
    except httpx.TransportError as error:
        raise Unreachable(str(error)[:MOST_SHOWN]) from None


def _client(url: str, seconds: float, pause: float) -> httpx.Client:
    """A client for one request, whose whole answer must arrive within `seconds` from now."""
    until = time.monotonic() + seconds
    transport: Any = httpx.HTTPTransport(verify=trust_for(url))
    inner = transport._pool._network_backend
    transport._pool._network_backend = TimedBackend(inner, lambda: until)
    return httpx.Client(transport=transport, timeout=pause, trust_env=False, follow_redirects=False)


def _send(client: httpx.Client, question: Question) -> AbstractContextManager[httpx.Response]:
    named = {"json": question.body, "headers": question.headers}
    return client.stream(question.method, question.url, **named)


class TextReader:
    """Extracts the pieces of text from an answer as its bytes arrive.

    Args:
        response: The answer with its status and headers; `feed` gets its body.
        usage: Filled with the `usage` that the engine sends, if any.
        fields: Fields of a message whose text counts.
        on_thought: Called with each piece of what the model thinks.
    """

    def __init__(
        self,
        response: httpx.Response,
        most: int,
        usage: dict[str, Any] | None,
        fields: Sequence[str] = ("content",),
        on_thought: Callable[[str], None] | None = None,
    ) -> None:
        kind = response.headers.get("content-type", "")
        self._status, self._most, self._usage = response.status_code, most, usage
        self._is_stream = self._status == 200 and not kind.startswith("application/json")
        self._rest, self._size, self._fields, self._on_thought = b"", 0, fields, on_thought

    def feed(self, piece: bytes) -> Iterator[str]:
        """Texts of the events that this piece of the body completes."""
        self._size += len(piece)
        if self._size > self._most:
            raise Unusable(f"the answer is larger than {human_bytes(self._most)}")
        self._rest += piece
        if self._is_stream:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                yield from self._event(line)

    def end(self) -> Iterator[str]:
        """Text of the last event, or of a whole answer without a stream."""
        if self._status != 200:
            start = redact(self._rest.decode(errors="replace"))[:MOST_SHOWN]
            kind = Unreachable if self._status in GATEWAY_ERRORS else Unusable
            raise kind(f"HTTP {self._status}: {start}")
        if self._is_stream:
            yield from self._event(self._rest)
        else:
            yield from self._texts(_checked(self._rest, "the answer"))

    def _event(self, line: bytes) -> Iterator[str]:
        kind, _, data = line.strip().partition(b":")
        if kind == b"data" and (data := data.strip()) != END:
            yield from self._texts(_checked(data, "an event"))

    def _texts(self, content: Any) -> Iterator[str]:
        found = content.get("usage") if isinstance(content, dict) else None
        if self._usage is not None and isinstance(found, dict):
            self._usage.update(found)
        thoughts = (_text(content, [name]) for name in THOUGHTS)
        if self._on_thought and (thought := next(filter(None, thoughts), "")):
            self._on_thought(thought)
        if text := _text(content, self._fields):
            yield text


def _checked(data: bytes, what: str) -> Any:
    try:
        content = decode(data)
    except JsonError as error:
        raise Unusable(f"{what} {error}") from None
    if isinstance(content, dict) and content.get("error"):
        raise Unusable(redact(str(content["error"]))[:MOST_SHOWN])
    return content


def _text(content: Any, fields: Sequence[str]) -> str:
    """Text in an answer or an event; empty = none."""
    try:
        choice = content["choices"][0]
        part = choice.get("delta") or choice.get("message")
        found = [part.get(name) for name in fields] if part else [choice.get("text")]
    except (AttributeError, KeyError, IndexError, TypeError):
        return ""  # an event with the usage has no choice
    return "".join(one for one in found if isinstance(one, str))
