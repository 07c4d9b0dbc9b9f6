"""HTTP client for engines: one deadline for the whole answer, a limit on its size, no redirects.

An engine may be faulty or hostile. Proxies, cookies and compressed answers are not used.
"""

import asyncio
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import httpx

from moorage.common.printable import short
from moorage.common.strict_json import LIMITS, JsonError, JsonLimits, NotJson, decode
from moorage.common.units import MIB, human_bytes
from moorage.readiness.answers import Unreadable
from moorage.readiness.protocol import MOST_BYTES, Phase, Probe

MOST_METRICS = 8 * MIB
"""Most bytes of an answer with metrics. Hundreds of label sets take some MiB."""

MOST_LINE, MOST_LABEL_SETS, MOST_COUNT = 1024, 2000, 2**53
"""Limits of metrics: characters of a line, number of lines, and value of a line."""

LABEL = re.compile(r'(\w+)="([^"]*)"')
"""A label in the name of a metric, with its value."""

MOST_SHOWN = 200
"""Characters shown of a transport error, which may quote the engine's answer."""

LIST_SECONDS = 5.0
LISTING = Probe(phase=Phase.LISTED, deadline="warm_up_seconds", method="GET", path="/v1/models")

UNREADABLE = (ValueError, LookupError, ArithmeticError)
"""Errors of the metrics library for invalid lines. It documents none; a label without a name raises
an `IndexError`, a time stamp of 400 digits an `OverflowError`."""


GATEWAY_ERRORS = frozenset({502, 503, 504})
"""HTTP status of a gateway that reaches no engine."""


class NoAnswer(Exception):
    """An engine gave no usable answer; the message is the reason."""


class Unreachable(NoAnswer, ConnectionError):
    """Nothing listens at the address, or the connection was cut."""


class Late(NoAnswer, TimeoutError):
    """No complete answer came in time."""


class Unusable(NoAnswer):
    """The answer is too large, compressed, or not HTTP."""


class Answer(NamedTuple):
    """HTTP status and body of a complete answer."""

    status: int
    content: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.content.decode(errors="replace")

    def json(self, most: int = LIMITS.size) -> Any:
        """The body parsed as JSON; raises `JsonError` if it is not JSON or exceeds the limits."""
        return decode(self.content, JsonLimits(size=most))


class Question(NamedTuple):
    """A request to an engine.

    Attributes:
        body: Sent as JSON; None = no body.
        api_key: Sent as a bearer token; empty = none.
        sound: A WAV file; if given, `body` is sent as the fields of a form.
    """

    url: str
    method: str = "GET"
    body: Any = None
    parameters: dict[str, str] | None = None
    api_key: str = ""
    sound: bytes = b""

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the request; they rule out compression, which could expand without limit."""
        key = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return {"Accept-Encoding": "identity", **key}

    @property
    def content(self) -> dict[str, Any]:
        """Arguments of httpx for the body."""
        if not self.sound:
            return {"json": self.body}
        return {"data": self.body, "files": {"file": ("tone.wav", self.sound, "audio/wav")}}


async def ask(
    endpoint: str, probe: Probe, timeout_seconds: float, api_key: str = ""
) -> tuple[int, Any]:
    """Send a probe to an engine at a base URL; the time-out covers connection and whole answer.

    Returns:
        HTTP status and answer: parsed JSON, `Unreadable` for JSON beyond the limits, otherwise
        text. Status 0 = no answer, with the reason in its place; an accepted TCP connection counts
        as 200.
    """
    try:
        if not probe.method:
            await connect(endpoint, timeout_seconds)
            return 200, "accepted"
        url = endpoint + probe.path
        question = Question(url, probe.method, probe.body, api_key=api_key, sound=probe.sound)
        answer = await ask_engine(question, timeout_seconds, probe.most_bytes)
    except NoAnswer as error:
        return 0, str(error)
    try:
        return answer.status, answer.json(probe.most_bytes)
    except NotJson:
        return answer.status, answer.text
    except JsonError as error:
        return answer.status, Unreadable(why=str(error))


async def served_names(endpoint: str, api_key: str = "") -> frozenset[str] | None:
    """Model names that the server at a base URL lists; None = it lists none."""
    status, answer = await ask(endpoint, LISTING, LIST_SECONDS, api_key)
    entries = answer.get("data") if status == 200 and isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    return frozenset(str(entry.get("id")) for entry in entries if isinstance(entry, dict))


def read_metrics(url: str, timeout_seconds: float, api_key: str = "") -> str:
    """Text of an engine's metrics; empty for an unusable answer or another status than 200.

    Raises:
        TimeoutError: The engine did not answer in time.
        ConnectionError: Nothing answers at the URL.
    """
    try:
        answer = ask_engine_now(Question(url, api_key=api_key), timeout_seconds, MOST_METRICS)
    except Unusable:
        return ""
    # Only names and numbers matter. Text beyond ASCII would take several times the memory.
    return answer.content.decode("ascii", "replace") if answer.status == 200 else ""


def metrics_total(text: str, names: Sequence[str]) -> int | None:
    """Sum of the named counts over all label sets; an engine has one label set for each rank.

    A name may select label sets: `tokens_total{mode="decode"}`.

    None if all are missing, or if a value is not a count, such as `NaN`. Only short lines with
    these names reach the library's parser: it takes seconds and 100 MiB for a whole answer, minutes
    for one long line, and refuses an answer with one invalid line.
    """
    parts = [name.partition("{") for name in names]
    selected = {name: dict(LABEL.findall(labels)) for name, _, labels in parts}
    wanted = "|".join(map(re.escape, selected))
    found = re.finditer(rf"^(?:{wanted})[{{ \t].*$", text, re.MULTILINE)
    try:
        values = [_value(match, selected) for match in islice(found, MOST_LABEL_SETS)]
    except UNREADABLE:
        return None
    counts = [value for value in values if value is not None]
    return sum(counts) if counts else None


def _value(line: re.Match[str], selected: Mapping[str, dict[str, str]]) -> int | None:
    """Value in a metric's line; None if the labels of its name do not select it.

    Raises:
        ValueError: The value is not a count, or the line is long.
    """
    from prometheus_client.parser import (  # noqa: PLC0415  (few who ask an engine want metrics)
        text_string_to_metric_families,
    )

    if line.end() - line.start() <= MOST_LINE:
        ((sample,),) = (family.samples for family in text_string_to_metric_families(line[0]))
        if 0 <= sample.value <= MOST_COUNT:
            is_selected = selected[sample.name].items() <= sample.labels.items()
            return int(sample.value) if is_selected else None
    raise ValueError


async def ask_engine(question: Question, seconds: float, most: int = MOST_BYTES) -> Answer:
    """Send a request; `seconds` limits connection, request and whole answer together.

    Raises:
        NoAnswer: `Unreachable`, `Late` or `Unusable`.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _answer(question, most)
    except TimeoutError:
        raise Late(f"no whole answer within {seconds:g} s") from None
    except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
        raise failure_of(error) from None


def ask_engine_now(question: Question, seconds: float, most: int = MOST_BYTES) -> Answer:
    """Blocking form of `ask_engine`."""
    with ThreadPoolExecutor(1, "moorage-ask") as pool:  # this thread may already run an event loop
        return pool.submit(asyncio.run, ask_engine(question, seconds, most)).result()


async def connect(url: str, seconds: float) -> None:
    """Open a TCP connection to an engine, and close it; raises `Unreachable` or `Late`."""
    try:
        where = httpx.URL(url)
        port = where.port or (443 if where.scheme == "https" else 80)
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(where.host, port)
            writer.transport.abort()
    except TimeoutError:
        raise Late(f"no connection within {seconds:g} s") from None
    except (httpx.InvalidURL, OSError) as error:
        raise failure_of(error) from None


@cache
def trusted_authorities() -> ssl.SSLContext:
    """The TLS context, loaded once: loading it takes longer than the rest of a request."""
    return httpx.create_ssl_context(trust_env=False)


def trust_for(url: str) -> ssl.SSLContext:
    """TLS context for a URL; without TLS it is empty, which saves loading the certificates."""
    is_tls = httpx.URL(url).scheme == "https"
    return trusted_authorities() if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _answer(question: Question, most: int) -> Answer:
    method, url, trust = question.method, question.url, trust_for(question.url)
    options = question.content | {"params": question.parameters, "headers": question.headers}
    async with (
        httpx.AsyncClient(timeout=None, trust_env=False, verify=trust) as client,
        client.stream(method, url, follow_redirects=False, **options) as response,
    ):
        return Answer(response.status_code, await _body(response, most))


async def _body(response: httpx.Response, most: int) -> bytes:
    coding = short(response.headers.get("content-encoding", "identity"), MOST_SHOWN)
    if coding.lower() not in ("", "identity"):
        raise Unusable(f"the answer is compressed ({coding}), which was not requested")
    found = bytearray()
    async for piece in response.aiter_raw():
        found += piece
        if len(found) > most:
            raise Unusable(f"the answer is larger than {human_bytes(most)}")
    return bytes(found)


def failure_of(error: Exception) -> NoAnswer:
    """Translate a transport error to a `NoAnswer`."""
    message = short(_reason(error), MOST_SHOWN)
    # httpx says so when a connection closes before an answer has begun.
    if isinstance(error, httpx.ProtocolError) and not message.startswith("Server disconnected"):
        return Unusable(f"the answer is no HTTP: {message}")
    return Unreachable(message)


def _reason(error: BaseException) -> str:
    """The operating system's message if there is one, such as `Connection refused`."""
    inner: Any = error
    while inner is not None:
        number = inner.errno if isinstance(inner, OSError) else None
        if number and number > 0 and not isinstance(inner, ssl.SSLError):
            return os.strerror(number)
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__
