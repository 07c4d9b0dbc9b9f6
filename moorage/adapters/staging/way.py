"""A way by which the files of a model come to a host; it needs the standard library alone."""

from __future__ import annotations

import contextlib
import threading
import urllib.parse
import urllib.request
from typing import Any

from moorage.adapters.staging.checks import File, size_of

TRIES = 6
TIMEOUT_SECONDS = 30
PIECE = 1 << 20


class Way:
    """One of the ways by which files come: another host of the fleet, or where they are from.

    Attributes:
        name: Whose it is, as progress and records name it.
        tries: How often a file is asked for.
        lost: Whether it has failed, and there is another.
        brought: Bytes that came by it.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.name, self.tries = told["name"], told.get("tries", TRIES)
        self.lost, self.brought = False, 0
        self._urls, self._headers = told["urls"], told.get("headers", {})
        self._seconds = told.get("timeout", TIMEOUT_SECONDS)
        # Proxies are for the world outside.
        proxies = [urllib.request.ProxyHandler({})] if told.get("near") else []
        self._opener = urllib.request.build_opener(_KeepsSecrets, *proxies)
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
                raise ValueError(f"asked from {have}, got {answer.headers.get('Content-Range')}")
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


class _KeepsSecrets(urllib.request.HTTPRedirectHandler):
    """Sends the token to nobody but whom it was meant for: hubs redirect to other hosts."""

    def redirect_request(
        self, req: urllib.request.Request, *told: Any
    ) -> urllib.request.Request | None:
        """The request to follow with."""
        request = super().redirect_request(req, *told)
        if request is not None and _host(request.full_url) != _host(req.full_url):
            request.remove_header("Authorization")
        return request


def _start(answer: Any) -> int:
    """Offset at which a partial answer begins; -1 when it does not say."""
    said = answer.headers.get("Content-Range", "")
    with contextlib.suppress(ValueError, IndexError):
        return int(said.split()[1].split("-")[0])
    return -1


def _host(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc
