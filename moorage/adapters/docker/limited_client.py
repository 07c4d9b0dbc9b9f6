"""Docker's own client with limits of time and bytes: the host of a daemon may be hostile."""

import math
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from http import HTTPStatus
from http.client import HTTPException
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException

from moorage.adapters.docker.connection import CONNECT_SECONDS, FRAME, MOST_MESSAGE
from moorage.adapters.transfer.http_answer import TimedAnswer, body_of
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.units import KIB, MIB, human_bytes

LARGEST_ANSWER = 16 * MIB
"""Limit of an answer that is no stream, with its head."""

EVENT = JsonLimits(size=64 * KIB, entries=1000)
PIECE = 64 * KIB
"""Most bytes of one piece of a stream."""


class LimitedClient(docker.DockerClient):
    """A client that ignores the environment's proxies and certificate authorities.

    Each wait for bytes has the time-out of its request. A whole answer may take twice as long; a
    stream of events, a container's output and an attached socket may take any time.
    """

    def __init__(self, **arguments: Any) -> None:
        self.api = _LimitedAPI(**arguments)


class _LimitedAPI(docker.APIClient):
    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.trust_env = False
        for adapter in self.adapters.values():
            _add(_LimitedAdapter, adapter)

    def get_redirect_target(self, resp: Any) -> str | None:  # noqa: ARG002
        """None: a daemon has no reason to lead elsewhere."""
        return None

    def send(self, request: Any, **options: Any) -> Any:
        """Send a request; reads the whole answer unless a stream is wanted."""
        # The time-out for connecting applies to each sent chunk too, and a disk may be slow.
        is_remote = not self.base_url.startswith("http+docker:")
        if is_remote and "Transfer-Encoding" not in request.headers:
            options["timeout"] = (CONNECT_SECONDS, options.get("timeout"))
        answer: Any = super().send(request, **options | {"stream": True})
        if answer.headers.get("Content-Encoding"):
            answer.close()
            raise requests.exceptions.ContentDecodingError("its answer is compressed")
        if not options.get("stream"):
            _ = answer.content
        elif answer.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            answer.raw._fp.lift_deadline()
        return answer

    def _raise_for_status(self, response: Any) -> None:
        """Raise the error of an answer; the library expects that each has a message."""
        library: Any = super()
        try:
            library._raise_for_status(response)
        except (KeyError, TypeError):
            text = response.text[:MOST_MESSAGE]
            raise APIError(f"{response.status_code}", response, text) from None

    def _stream_helper(self, response: Any, decode: bool = False) -> Iterator[Any]:
        """Pieces of a stream, or the objects on its lines."""
        _lift_limits(response)
        pieces = _pieces(response)
        return _objects(pieces) if decode else pieces

    def _stream_raw_result(self, response: Any, *_: Any) -> Iterator[bytes]:
        """An archive. The library removes the time-out of its reads."""
        return _pieces(response)

    def _multiplexed_response_stream_helper(self, response: Any) -> Iterator[bytes]:
        """A container's output. The library reads each frame whole, and the host tells its size."""
        _lift_limits(response)
        library: Any = self
        library._disable_socket_timeout(library._get_raw_response_socket(response))
        read = response.raw.read
        while len(header := read(FRAME.size)) == FRAME.size:
            (left,) = FRAME.unpack(header)
            while left and (piece := read(min(left, PIECE))):
                left -= len(piece)
                yield piece


class _LimitedAdapter:
    def get_connection_with_tls_context(self, *given: Any, **named: Any) -> Any:
        pool = super().get_connection_with_tls_context(*given, **named)  # type: ignore[misc]
        _add(_LimitedPool, pool)
        return pool


class _LimitedPool:
    def _new_conn(self) -> Any:
        connection = super()._new_conn()  # type: ignore[misc]
        connection.response_class = _limited_answer
        return connection


def _add(mixin: type, existing: Any) -> None:
    """Add a mixin to an object. Circular references would keep its connections open for a while."""
    kind: Any = type(existing)
    existing.__class__ = _mixed(mixin, kind)


@cache
def _mixed(mixin: type, kind: type) -> type:
    return kind if issubclass(kind, mixin) else type(kind.__name__, (mixin, kind), {})


def _limited_answer(sock: Any, *more: Any, **named: Any) -> TimedAnswer:
    seconds = 2 * (sock.gettimeout() or math.inf)
    return TimedAnswer(sock, *more, seconds=seconds, most=LARGEST_ANSWER, **named)


def _lift_limits(response: Any) -> None:
    if "chunked" in response.headers.get("Transfer-Encoding", ""):
        response.raw._fp.lift_deadline()


def _pieces(response: Any) -> Iterator[bytes]:
    """A body as it arrives, read without urllib3, which reads any line between chunks whole."""
    with closing(response):
        try:
            yield from body_of(response.raw._fp)
            response.raw.release_conn()  # read to its end, so the connection is used again
        except (OSError, HTTPException) as error:
            raise requests.exceptions.ConnectionError(error) from error


def _objects(pieces: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects on the lines of a stream.

    Raises:
        DockerException: For any other line.
    """
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(_object, filter(bytes.strip, lines))
        if len(rest) > EVENT.size:
            raise DockerException(f"its answer has a line over {human_bytes(EVENT.size)}")
    if rest.strip():
        yield _object(rest)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = decode(line, EVENT)
    except JsonError as error:
        raise DockerException(f"its answer {error}") from None
    if not isinstance(found, dict):
        raise DockerException("its answer is no JSON object")
    return found
