"""HTTP for files: connections are kept, redirects are checked; standard library only.

Clients with more comfort take several times the processor time for each byte of a body.
"""

import base64
import contextlib
import http.client
import io
import math
import socket
import ssl
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from moorage.adapters.transfer.redirects import Guard

BLOCK = 1 << 18
MOST_REDIRECTS = 5
REDIRECTS = {301, 302, 303, 307, 308}
LARGEST_REDIRECT = 65_536
"""Bytes of its body; a connection that sends more is not used again."""

Headers = Mapping[str, str]
Origin = tuple[str, str]
"""Scheme, and host with port."""


class HttpPool:
    """Connections to what serves the files of one source.

    Args:
        url: Of the source: where it may lead to depends on it.
        seconds: How long to wait for a connection and for each next byte.
        head_seconds: How long a whole head of an answer may take.
        proxied: Whether the proxies of the environment are used.
        context: Makes what TLS trusts, once it is needed.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float,
        head_seconds: float,
        proxied: bool = False,
        context: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._guard, self._make_context = Guard(url), context
        self._seconds, self._head_seconds = seconds, head_seconds
        self._proxies = urllib.request.getproxies() if proxied else {}
        self._idle: dict[Origin, list[http.client.HTTPConnection]] = defaultdict(list)
        self._located: dict[str, str] = {}

    @contextlib.contextmanager
    def get(self, url: str, headers: Headers) -> Iterator[http.client.HTTPResponse]:
        """The answer to a request, to be read inside the block. Redirects are followed.

        Where they led to is asked at once the next time, until it refuses. `Authorization` is sent
        to the host of the URL only.

        Raises:
            OSError: It cannot be reached, or leads to where it must not (`RedirectRefused`).
            HTTPException: It does not answer in HTTP.
        """
        for at in filter(None, (self._located.get(url), url)):
            try:
                with self._follow(url, at, headers) as answer:
                    if answer.status < 400 or at == url:
                        yield answer
                        return
            except BaseException:
                self._located.pop(url, None)
                raise
            self._located.pop(url, None)

    @contextlib.contextmanager
    def _follow(self, url: str, at: str, headers: Headers) -> Iterator[http.client.HTTPResponse]:
        for _ in range(MOST_REDIRECTS + 1):
            own = headers if _origin(at) == _origin(url) else _without_token(headers)
            connection, answer = self._send(at, own)
            try:
                target = answer.headers.get("location") if answer.status in REDIRECTS else None
                if not target:
                    if at != url and answer.status < 400:
                        self._located[url] = at
                    yield answer
                    return
                answer.read(LARGEST_REDIRECT)
            finally:
                self._keep(at, connection, answer)
            at = urllib.parse.urljoin(at, target)
            self._guard.require_url(at)
        raise OSError(f"{_origin(url)[1]} leads on and on")

    def _send(
        self, url: str, headers: Headers
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        idle = self._idle[_origin(url)]
        with contextlib.suppress(OSError, http.client.HTTPException, IndexError):
            # IndexError: there is none. The others: the server has closed it meanwhile.
            connection = idle.pop()
            return connection, self._ask(connection, url, headers)
        connection = self._open(urllib.parse.urlsplit(url))
        return connection, self._ask(connection, url, headers)

    def _ask(
        self, connection: http.client.HTTPConnection, url: str, headers: Headers
    ) -> http.client.HTTPResponse:
        proxy = self._proxy(urllib.parse.urlsplit(url))
        is_relayed = proxy is not None and url.startswith("http:")
        sent = {**headers, **(_proxy_headers(proxy) if proxy and is_relayed else {})}
        try:
            if connection.sock is None:
                connection.connect()
            connection.request("GET", url if is_relayed else _path(url), headers=sent)
            return connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _open(self, at: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        """A connection that is not made yet: to checked addresses only, or to a proxy."""
        proxy = self._proxy(at)
        host, port = (proxy or at).hostname or "", (proxy or at).port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=self._seconds, context=self._context)
            if at.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=self._seconds)
        )
        timed = partial(_TimedAnswer, seconds=self._head_seconds)
        connection.response_class = timed  # type: ignore[assignment]
        if proxy is None:
            connection._create_connection = self._connect  # type: ignore[attr-defined]
        elif at.scheme == "https":
            connection.set_tunnel(at.hostname or "", at.port, _proxy_headers(proxy))
        return connection

    def _connect(self, address: tuple[str, int], *more: Any) -> socket.socket:
        *others, last = self._guard.addresses(*address)
        for one in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((one, address[1]), *more)
        return socket.create_connection((last, address[1]), *more)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return self._make_context()

    def _proxy(self, at: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
        proxy = self._proxies.get(at.scheme)
        if not proxy or urllib.request.proxy_bypass(at.hostname or ""):
            return None
        return urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")

    def _keep(
        self,
        url: str,
        connection: http.client.HTTPConnection,
        answer: http.client.HTTPResponse,
    ) -> None:
        """Use the connection again if all of the answer was read."""
        is_read = answer.isclosed() or answer.length == 0
        answer.close()
        if is_read and not answer.will_close:
            self._idle[_origin(url)].append(connection)
        else:
            connection.close()


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    """The headers, by name in lower case."""
    return {name.lower(): value for name, value in answer.getheaders()}


def body_of(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The body, as it arrives; raises `IncompleteRead` when it is cut short."""
    while answer.length != 0 and (block := answer.read1(BLOCK)):
        yield block
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


class _TimedAnswer(http.client.HTTPResponse):
    """An answer whose head has a deadline: the library's own limit is for each byte."""

    def __init__(self, *given: Any, seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timed = _TimedRead(self.fp.detach(), time.monotonic() + seconds)
        self.fp = io.BufferedReader(self._timed)

    def begin(self) -> None:
        """Read the head; the body may take as long as it comes."""
        super().begin()
        self._timed.until = math.inf


class _TimedRead(io.RawIOBase):
    """Reads what another one reads, until a time by the monotonic clock."""

    def __init__(self, raw: io.RawIOBase, until: float) -> None:
        self._raw, self.until = raw, until

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read the available bytes."""
        if time.monotonic() > self.until:
            raise TimeoutError("no whole head in time")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close both."""
        self._raw.close()
        super().close()


def _origin(url: str) -> Origin:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


def _path(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))


def _without_token(headers: Headers) -> Headers:
    return {name: value for name, value in headers.items() if name != "Authorization"}


def _proxy_headers(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    words = ":".join(urllib.parse.unquote(word or "") for word in (proxy.username, proxy.password))
    return {"Proxy-Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
