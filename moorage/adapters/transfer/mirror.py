"""A mirror from which a host downloads the files of a model; standard library only."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.parse
import urllib.request
from functools import partial
from typing import Any

from moorage.adapters.transfer.file_checks import File, size_of
from moorage.adapters.transfer.redirects import Guard

TRIES = 6
TIMEOUT_SECONDS = 30
PIECE = 1 << 20


class Mirror:
    """A place that serves the files of a model: another host of the fleet, or the source.

    Attributes:
        name: Its name in progress and records.
        tries: Attempts for each file.
        lost: Whether it has failed and another mirror is left.
        brought: Bytes downloaded from it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.name, self.tries = settings["name"], settings.get("tries", TRIES)
        self.lost, self.brought = False, 0
        self._urls, self._headers = settings["urls"], settings.get("headers", {})
        self._seconds = settings.get("timeout", TIMEOUT_SECONDS)
        # Proxies are for the world outside.
        proxies = [urllib.request.ProxyHandler({})] if settings.get("near") else []
        guard = Guard(next(iter(self._urls.values()), ""))
        self._opener = urllib.request.build_opener(_Redirects(guard), *_handlers(guard), *proxies)
        self._lock = threading.Lock()

    def fetch(self, file: File, path: str, stopped: threading.Event) -> None:
        """Go on where the last one ended; an answer that is the whole file begins anew.

        Of a source that calls contents by a name, no other is taken: a file that was replaced is
        never mixed with the old one.

        Args:
            file: The file.
            path: Where it grows.
            stopped: Set when it is to end early.
        """
        have = max(0, size_of(path))
        with self._open(file, have) as answer:
            goes_on = answer.status == 206 and _start(answer) == have
            if answer.status == 206 and not goes_on:
                raise ValueError(
                    f"requested bytes from {have}, got {answer.headers.get('Content-Range')}"
                )
            left = file["size"] - have * goes_on
            with open(path, "ab" if goes_on else "wb") as target:
                while left and not stopped.is_set() and (piece := answer.read1(PIECE)):
                    target.write(piece[:left])
                    self._count(len(piece))
                    left -= len(piece[:left])

    def _open(self, file: File, start: int) -> Any:
        headers = {**self._headers, "Range": f"bytes={start}-", "Accept-Encoding": "identity"}
        if file.get("etag"):
            headers["If-Match"] = f'"{file["etag"]}"'
        request = urllib.request.Request(self._urls[file["name"]], headers=headers)
        return self._opener.open(request, timeout=self._seconds)

    def _count(self, brought: int) -> None:
        with self._lock:
            self.brought += brought


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows where the guard lets it, and sends the token to nobody but whom it was meant for."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The request to follow with."""
        self._guard.require_url(newurl)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _host(request.full_url) != _host(req.full_url):
            request.remove_header("Authorization")
        return request


def _handlers(guard: Guard) -> list[urllib.request.BaseHandler]:
    """What opens connections: to an address that was checked, unless it is that of a proxy."""

    def connected(
        address: tuple[str, int], timeout: float, source: tuple[str, int] | None = None
    ) -> socket.socket:
        *others, last = guard.addresses(*address)
        for one in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((one, address[1]), timeout, source)
        return socket.create_connection((last, address[1]), timeout, source)

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(partial(_made, http.client.HTTPConnection, req), req)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            made = partial(_made, http.client.HTTPSConnection, req)
            return self.do_open(made, req, context=ssl.create_default_context())

    def _made(kind: Any, req: urllib.request.Request, host: str, **more: Any) -> Any:
        connection = kind(host, **more)
        if not req.has_proxy() and not getattr(req, "_tunnel_host", None):
            connection._create_connection = connected
        return connection

    return [Plain(), Secure()]


def _start(answer: Any) -> int:
    """Offset at which a partial answer begins; -1 when it does not say."""
    content_range = answer.headers.get("Content-Range", "")
    with contextlib.suppress(ValueError, IndexError):
        return int(content_range.split()[1].split("-")[0])
    return -1


def _host(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc
