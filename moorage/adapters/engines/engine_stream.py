"""Text of an engine as it is generated: server-sent events, one deadline and a limit of bytes.

An engine may be faulty or hostile: the deadline holds however slowly it sends, the limit however
much, and a line that is no event is an error.
"""

import time
from collections.abc import Iterator
from typing import Any

import httpx

from moorage.adapters.engines.engine_http import (
    Late,
    NoAnswer,
    Question,
    Unreachable,
    Unusable,
    trust_for,
)
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import human_bytes
from moorage.readiness.protocol import MOST_BYTES

PAUSE_SECONDS = 60.0
"""Longest time between two pieces of an answer, and until the first one, unless told otherwise."""

END = b"[DONE]"
MOST_SHOWN = 300


def stream_text(
    question: Question,
    seconds: float,
    most: int = MOST_BYTES,
    *,
    pause: float = PAUSE_SECONDS,
    usage: dict[str, Any] | None = None,
) -> Iterator[str]:
    """The pieces of a generated text, each as soon as it is there.

    An engine that does not stream answers with one piece.

    Args:
        question: A request for a chat or a completion with `"stream": true`.
        seconds: How long all of it may take.
        most: Bytes that the answer may have.
        pause: Longest time between two pieces, and until the first one.
        usage: Receives the engine's figures about the request, where it sends some.

    Raises:
        NoAnswer: `Unreachable`, `Late` or `Unusable`, in words.
    """
    headers = {"Accept-Encoding": "identity"}
    if question.api_key:
        headers["Authorization"] = f"Bearer {question.api_key}"
    pause = min(pause, seconds)
    try:
        with (
            httpx.Client(
                timeout=pause,
                trust_env=False,
                verify=trust_for(question.url),
                follow_redirects=False,
            ) as client,
            client.stream(
                question.method, question.url, json=question.body, headers=headers
            ) as response,
        ):
            lines = _lines(response, time.monotonic() + seconds, most)
            if response.status_code != 200:
                raise Unusable(f"HTTP {response.status_code}: {_start(lines)}")
            for content in _contents(response, lines):
                found = content.get("usage") if isinstance(content, dict) else None
                if usage is not None and isinstance(found, dict):
                    usage.update(found)
                if text := _text(content):
                    yield text
    except httpx.TimeoutException:
        raise Late(f"nothing came for {pause:g} s") from None
    except httpx.TransportError as error:
        raise Unreachable(str(error)[:MOST_SHOWN]) from None


def _lines(response: httpx.Response, deadline: float, most: int) -> Iterator[bytes]:
    """The lines of an answer, within its limits."""
    rest, size = b"", 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > most:
            raise Unusable(f"the answer is larger than {human_bytes(most)}")
        if time.monotonic() > deadline:
            raise Late("no whole answer in time")
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    yield rest


def _contents(response: httpx.Response, lines: Iterator[bytes]) -> Iterator[Any]:
    """What the events hold, or the whole answer where it is no stream."""
    if response.headers.get("content-type", "").startswith("application/json"):
        yield _checked(b"\n".join(lines), "the answer")
        return
    for line in lines:
        kind, _, data = line.strip().partition(b":")
        if kind == b"data" and (data := data.strip()) != END:
            yield _checked(data, "an event")


def _checked(data: bytes, what: str) -> Any:
    try:
        content = decode(data)
    except JsonError as error:
        raise Unusable(f"{what} {error}") from None
    if isinstance(content, dict) and content.get("error"):
        raise Unusable(str(content["error"])[:MOST_SHOWN])
    return content


def _text(content: Any) -> str:
    """The text in an answer or an event; empty where it has none."""
    try:
        choice = content["choices"][0]
        part = choice.get("delta") or choice.get("message")
        found = part.get("content") if part else choice.get("text")
    except (AttributeError, KeyError, IndexError, TypeError):
        return ""  # figures about the request come without a choice
    return found if isinstance(found, str) else ""


def _start(lines: Iterator[bytes]) -> str:
    return b" ".join(lines).decode(errors="replace")[:MOST_SHOWN]


__all__ = ["NoAnswer", "stream_text"]
