"""HTTP client for files: keeps connections and checks redirects; standard library only.

More convenient clients take several times the processor time for each byte of a body.
"""

import base64
import contextlib
import http.client
import socket
import ssl
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, cast

from moorage.adapters.transfer.http_answer import TimedAnswer
from moorage.adapters.transfer.redirects import Guard, is_loopback

MOST_REDIRECTS = 5
REDIRECTS = {301, 302, 303, 307, 308}
LARGEST_REDIRECT = 65_536
"""Most bytes of a redirect's body; a connection with a longer body is not reused."""

Headers = Mapping[str, str]
Origin = tuple[str, str]
"""Scheme, and host with port if given."""


class HttpPool:
    """Connections to the servers of one source's files.

    Args:
        url: URL of the source, which decides where redirects may lead.
        seconds: How long to wait for a connection and for each read.
        head_seconds: How long the head of an answer, or a whole redirect or refusal, may take in
            total.
        proxied: Whether to use the proxies of the environment.
        context: Creates the TLS context when it is first needed.
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
        self._proxied = proxied
        self._idle: dict[Origin, list[http.client.HTTPConnection]] = defaultdict(list)
        self._located: dict[str, str] = {}

    @contextlib.contextmanager
    def get(self, url: str, headers: Headers) -> Iterator[TimedAnswer]:
        """The answer to a request, to be read inside the block; follows redirects.

        The next request goes directly to the final URL of the redirects, until that fails. Only
        the origin of `url` gets `Authorization`.

        Raises:
            OSError: The server cannot be reached, or redirects too often or to a forbidden
                address (`RedirectRefused`).
            HTTPException: The server does not answer in HTTP.
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
    def _follow(self, url: str, at: str, headers: Headers) -> Iterator[TimedAnswer]:
        for _ in range(MOST_REDIRECTS + 1):
            own = headers if _origin(at) == _origin(url) else _without_token(headers)
            with _usable(at):
                connection, answer = self._send(at, own)
            try:
                target = answer.headers.get("location") if answer.status in REDIRECTS else None
                if not target:
                    if at != url and answer.status < 400:
                        self._located[url] = at
                    if answer.status < 400:  # a refusal is read within the deadline
                        answer.lift_deadline()
                    yield answer
                    return
                answer.read(LARGEST_REDIRECT)
            finally:
                self._keep(at, connection, answer)
            with _usable(target):
                at = urllib.parse.urljoin(at, target)
                self._guard.require_url(at)
        raise OSError(f"{_origin(url)[1]} leads on and on")

    def _send(self, url: str, headers: Headers) -> tuple[http.client.HTTPConnection, TimedAnswer]:
        idle = self._idle[_origin(url)]
        with contextlib.suppress(OSError, http.client.HTTPException, IndexError):
            # IndexError: no idle connection. The others: the server has closed it meanwhile.
            connection = idle.pop()
            return connection, self._ask(connection, url, headers)
        connection = self._open(urllib.parse.urlsplit(url))
        return connection, self._ask(connection, url, headers)

    def _ask(
        self, connection: http.client.HTTPConnection, url: str, headers: Headers
    ) -> TimedAnswer:
        proxy = self._proxy(urllib.parse.urlsplit(url))
        is_relayed = proxy is not None and url.startswith("http:")
        sent = {**headers, **(_proxy_headers(proxy) if proxy and is_relayed else {})}
        try:
            if connection.sock is None:
                connection.connect()
            connection.request("GET", url if is_relayed else _path(url), headers=sent)
            return cast(TimedAnswer, connection.getresponse())
        except BaseException:
            connection.close()
            raise

    def _open(self, at: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        """A connection, not yet established, that leads only to checked addresses or a proxy."""
        proxy = self._proxy(at)
        host, port = (proxy or at).hostname or "", (proxy or at).port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=self._seconds, context=self._context)
            if at.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=self._seconds)
        )
        timed = partial(TimedAnswer, seconds=self._head_seconds)
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
        return proxy_for(at) if self._proxied else None

    def _keep(
        self,
        url: str,
        connection: http.client.HTTPConnection,
        answer: TimedAnswer,
    ) -> None:
        """Keep the connection for reuse if the whole answer was read; close it otherwise."""
        is_read = answer.isclosed() or answer.length == 0
        answer.close()
        if is_read and not answer.will_close:
            self._idle[_origin(url)].append(connection)
        else:
            connection.close()


def proxy_for(at: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
    """The proxy that the environment names for a URL; None = the URL is requested directly.

    This machine needs no proxy. A proxy that does not speak HTTP, such as one of SOCKS, is ignored.

    Raises:
        OSError: The proxy's address is malformed; the message does not quote it.
    """
    host, proxy = at.hostname or "", urllib.request.getproxies().get(at.scheme)
    if not proxy or is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    try:
        found = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        is_usable = found.hostname and found.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise OSError(
            f"the variable {at.scheme.upper()}_PROXY holds no address of a proxy"
        ) from None
    return found if found.scheme in ("http", "https") else None


@contextlib.contextmanager
def _usable(url: str) -> Iterator[None]:
    """Raise `OSError` where the parts of a URL, such as its port, are none."""
    try:
        yield
    except OSError:  # some of TLS are value errors, too
        raise
    except ValueError as error:
        shown = ascii(url.partition("?")[0][:200])  # a query may hold a signature
        raise OSError(f"{shown} is no address: {error}") from error


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
