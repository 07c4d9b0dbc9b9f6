"""HTTP to engines: one deadline for the whole answer, a limit of its size, no redirects.

An engine may be faulty or hostile. The deadline holds however slowly it sends, and the limit
however much. Redirects, proxies, cookies and compressed answers are not used.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import httpx

from moorage.common.strict_json import decode
from moorage.common.units import MIB, human_bytes

MOST_BYTES = 4 * MIB
"""Of an answer, unless a caller says otherwise: a long completion has some hundred KiB."""

MOST_SHOWN = 200
"""Characters of an error on the way; it may quote what the engine sent."""

DISCONNECTED = "Server disconnected"
"""Start of httpx's message when a connection ends before an answer has begun."""


class NoAnswer(Exception):
    """An engine gave no usable answer; the message is the reason."""


class Unreachable(NoAnswer, ConnectionError):
    """Nothing listens there, or the connection was cut."""


class Late(NoAnswer, TimeoutError):
    """No complete answer came in time."""


class Unusable(NoAnswer):
    """The answer is too large, compressed, or not HTTP."""


class Answer(NamedTuple):
    """A whole answer.

    Attributes:
        status: HTTP status.
        content: The body.
    """

    status: int
    content: bytes

    @property
    def text(self) -> str:
        """The body as text; what is no UTF-8 is replaced."""
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """The body as data.

        Raises:
            JsonError: It is no JSON, or more of it than is accepted.
        """
        return decode(self.content)


class Question(NamedTuple):
    """A request to an engine.

    Attributes:
        url: Where.
        method: HTTP method.
        body: Sent as JSON; None = nothing.
        parameters: Of the query.
        api_key: Sent as a bearer token when there is one.
    """

    url: str
    method: str = "GET"
    body: Any = None
    parameters: dict[str, str] | None = None
    api_key: str = ""


async def ask_engine(question: Question, seconds: float, most: int = MOST_BYTES) -> Answer:
    """Ask an engine.

    Args:
        question: What.
        seconds: How long all of it may take: connecting, asking, and the whole answer.
        most: Bytes that the body may have.

    Raises:
        NoAnswer: `Unreachable`, `Late` or `Unusable`, in words.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _answer(question, most)
    except TimeoutError:
        raise Late(f"no whole answer within {seconds:g} s") from None
    except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
        raise _failure_of(error) from None


def ask_engine_now(question: Question, seconds: float, most: int = MOST_BYTES) -> Answer:
    """Ask an engine, and wait for the answer here; as `ask_engine`."""
    with ThreadPoolExecutor(1, "moorage-ask") as pool:  # this thread may have a loop of its own
        return pool.submit(asyncio.run, ask_engine(question, seconds, most)).result()


async def connect(url: str, seconds: float) -> None:
    """Open a TCP connection to an engine, and close it.

    Raises:
        NoAnswer: `Unreachable` or `Late`.
    """
    try:
        where = httpx.URL(url)
        port = where.port or (443 if where.scheme == "https" else 80)
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(where.host, port)
            writer.transport.abort()
    except TimeoutError:
        raise Late(f"no connection within {seconds:g} s") from None
    except (httpx.InvalidURL, OSError) as error:
        raise _failure_of(error) from None


@cache
def trusted_authorities() -> ssl.SSLContext:
    """The TLS context, read once: reading it takes longer than the rest of a request."""
    return httpx.create_ssl_context(trust_env=False)


async def _answer(question: Question, most: int) -> Answer:
    headers = {"Accept-Encoding": "identity"}
    if question.api_key:
        headers["Authorization"] = f"Bearer {question.api_key}"
    async with (
        httpx.AsyncClient(
            timeout=None, trust_env=False, verify=trusted_authorities(), follow_redirects=False
        ) as client,
        client.stream(
            question.method,
            question.url,
            json=question.body,
            params=question.parameters,
            headers=headers,
        ) as response,
    ):
        return Answer(response.status_code, await _body(response, most))


async def _body(response: httpx.Response, most: int) -> bytes:
    coding = response.headers.get("content-encoding", "identity")
    if coding.lower() not in ("", "identity"):
        raise Unusable(f"the answer is compressed ({_short(coding)}), which was not requested")
    found = bytearray()
    async for piece in response.aiter_raw():
        found += piece
        if len(found) > most:
            raise Unusable(f"the answer is larger than {human_bytes(most)}")
    return bytes(found)


def _failure_of(error: Exception) -> NoAnswer:
    message = _short(_reason(error))
    if isinstance(error, httpx.ProtocolError) and not message.startswith(DISCONNECTED):
        return Unusable(f"the answer is no HTTP: {message}")
    return Unreachable(message)


def _reason(error: BaseException) -> str:
    """The operating system's message where there is one, such as `Connection refused`."""
    inner: Any = error
    while inner is not None:
        number = inner.errno if isinstance(inner, OSError) else None
        if number and number > 0 and not isinstance(inner, ssl.SSLError):
            return os.strerror(number)
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__


def _short(text: str) -> str:
    text = text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
    return text.encode("unicode_escape").decode() if not text.isprintable() else text
