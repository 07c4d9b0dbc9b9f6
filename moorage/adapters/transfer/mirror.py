"""A mirror from which a host downloads the files of a model; standard library only."""

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.range_answer import Answer, DownloadError, replaced_error
from moorage.adapters.transfer.redirects import Guard

TRIES = 6
LONGEST_WAIT = 10
TIMEOUT_SECONDS = 30
BLOCK = 1 << 20
CAUSE_BY_STATUS = {
    401: "source-unauthorized",
    403: "source-unauthorized",
    404: "source-missing",
    416: "download-corrupt",
    429: "hub-rate-limited",
}
REPLACED = 412
HOPELESS = {401, 403, 404, 416}


class Mirror:
    """A place that serves the files of a model: another host of the fleet, or the source.

    Attributes:
        waits: Seconds before each further attempt at a file.
        lost: Whether it has failed and another mirror is left.
        brought: Bytes downloaded from it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.name = settings["name"]
        tries = settings.get("tries", TRIES)
        self.waits = [min(2**number / 2, LONGEST_WAIT) for number in range(tries - 1)]
        self.lost, self.brought = False, 0
        self._urls, self._headers = settings["urls"], settings.get("headers", {})
        self._seconds = settings.get("timeout", TIMEOUT_SECONDS)
        # Proxies are for the world outside.
        proxies = [urllib.request.ProxyHandler({})] if settings.get("near") else []
        guard = Guard(next(iter(self._urls.values()), ""))
        self._opener = urllib.request.build_opener(_Redirects(guard), *_handlers(guard), *proxies)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def open_range(self, file: File, start: int, stop: int) -> Iterator[Answer]:
        """Ask for a file from one offset up to another, and read the answer inside the block.

        Of a source that calls contents by a name, no other is taken: a file that was replaced is
        never mixed with the old one.
        """
        headers = {**self._headers, "Range": f"bytes={start}-{stop - 1}"}
        headers["Accept-Encoding"] = "identity"
        if file.get("etag"):
            headers["If-Match"] = f'"{file["etag"]}"'
        request = urllib.request.Request(self._urls[file["name"]], headers=headers)
        with _download_errors(file):
            answer = self._opener.open(request, timeout=self._seconds)
        with answer:
            yield Answer(answer.status, answer.headers, self._blocks(file, answer))

    def _blocks(self, file: File, answer: Any) -> Iterator[bytes]:
        with _download_errors(file):
            while block := answer.read1(BLOCK):
                with self._lock:
                    self.brought += len(block)
                yield block


@contextlib.contextmanager
def _download_errors(file: File) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == REPLACED:
            raise replaced_error(file) from None
        cause = CAUSE_BY_STATUS.get(error.code, "hub-unavailable")
        hopeless = error.code in HOPELESS
        raise DownloadError(cause, f"{file['name']}: {error}", transient=not hopeless) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError("hub-unavailable", f"{file['name']}: {error}", transient=True) from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects that the guard allows, and sends the token to the first host only."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        self._guard.require_url(newurl)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _host(request.full_url) != _host(req.full_url):
            request.remove_header("Authorization")
        return request


def _handlers(guard: Guard) -> list[urllib.request.BaseHandler]:
    """Handlers that connect to checked addresses only, or to a proxy."""

    def connect(address: tuple[str, int], *more: Any) -> socket.socket:
        *others, last = guard.addresses(*address)
        for one in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((one, address[1]), *more)
        return socket.create_connection((last, address[1]), *more)

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(partial(make, http.client.HTTPConnection, req), req)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            make_secure = partial(make, http.client.HTTPSConnection, req)
            return self.do_open(make_secure, req, context=ssl.create_default_context())

    def make(kind: Any, req: urllib.request.Request, host: str, **more: Any) -> Any:
        connection = kind(host, **more)
        if not req.has_proxy() and not getattr(req, "_tunnel_host", None):
            connection._create_connection = connect
        return connection

    return [Plain(), Secure()]


def _host(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc
