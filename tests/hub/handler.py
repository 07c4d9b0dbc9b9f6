"""One connection to the hub: listings, files in whole and in part, refusals."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.hub.faults import API, REFUSALS, Fault, Request

if TYPE_CHECKING:
    from tests.hub.server import Hub

LARGE = (".safetensors", ".bin")
"""Files that the hub keeps in LFS: announced with their SHA-256, sent by another host."""


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    host: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.hub.closed:
            self.close_connection = True
            return
        path = unquote(urlsplit(self.path).path)
        if listing := re.fullmatch(r"/api/models/([^/]+/[^/]+?)(?:/revision/(.+))?", path):
            repo, revision = listing[1], listing[2] or "main"
            self._answer(API, lambda fault: self._listing(repo, revision, fault))
        elif file := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._answer(file[3], lambda fault: self._file(file[1], file[2], file[3], fault))
        else:
            self._answer(path, lambda _: self._empty(404, {}))

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `Hub.requests` instead."""

    def _answer(self, name: str, answer: Callable[[Fault], None]) -> None:
        seen = self.headers.get("Range"), self.headers.get("Authorization")
        self.request_seen = Request(name, self.host, *seen, client=self.client_address[0])
        self.hub.requests.append(self.request_seen)
        fault = self.hub.fault_of(name)
        if fault.hold:
            fault.hold.wait(10)
        if fault.refusal or fault.status:
            self._empty(*REFUSALS.get(fault.refusal, (fault.status, fault.headers)))
        elif self.host == "hub" and self.hub.token and seen[1] != f"Bearer {self.hub.token}":
            self._empty(*REFUSALS["unauthorized"])
        else:
            answer(fault)

    def _listing(self, repo: str, revision: str, fault: Fault) -> None:
        if repo not in self.hub.commits:
            return self._empty(*REFUSALS["no repository"])
        commit = self.hub.branches[repo].get(revision, revision)
        if commit not in self.hub.commits[repo]:
            return self._empty(*REFUSALS["no revision"])
        siblings = [_sibling(name, data) for name, data in self.hub.commits[repo][commit].items()]
        body = json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()
        body = body if fault.content is None else fault.content
        status = fault.status_with_content
        return self._body(status, {"Content-Type": "application/json"}, body, fault)

    def _file(self, repo: str, revision: str, name: str, fault: Fault) -> None:
        commit = self.hub.branches.get(repo, {}).get(revision, revision)
        data = self.hub.commits.get(repo, {}).get(commit, {}).get(name)
        if data is None:
            return self._empty(*REFUSALS["no file"])
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_etag(name, data)}"'}
        if self.host == "hub" and self.hub.has_cdn and name.endswith(LARGE):
            linked = {"X-Linked-Size": str(len(data)), "X-Linked-ETag": headers["ETag"]}
            return self._empty(
                302, headers | linked | {"Location": self.hub.address("cdn") + self.path}
            )
        data = data if fault.content is None else fault.content
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not wanted or fault.ignore_range:
            return self._body(200, headers, data, fault)
        first, last = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        if first > last:
            return self._empty(416, {"Content-Range": f"bytes */{len(data)}"})
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self._body(206, headers, data[first : last + 1], fault)

    def _empty(self, status: int, headers: Mapping[str, str]) -> None:
        self._body(status, headers, b"", Fault())

    def _body(self, status: int, headers: Mapping[str, str], body: bytes, fault: Fault) -> None:
        self.request_seen.status = status
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        end = len(body) if fault.cut_after is None else min(fault.cut_after, len(body))
        try:
            for start in range(0, end, 4096):
                piece = body[start : min(start + 4096, end)]
                self.request_seen.sent += len(piece)  # before the client can look at the count
                self.wfile.write(piece)
                time.sleep(fault.pause)
        except OSError:
            self.close_connection = True  # the client has read enough
        if fault.cut_after is not None:
            self._cut(fault.reset)

    def _cut(self, reset: bool) -> None:
        self.close_connection = True
        if reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())


def _sibling(name: str, data: bytes) -> dict[str, Any]:
    sibling: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": _blob(data)}
    if name.endswith(LARGE):
        checksum = hashlib.sha256(data).hexdigest()
        sibling["lfs"] = {"sha256": checksum, "size": len(data), "pointerSize": 130}
    return sibling


def _etag(name: str, data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if name.endswith(LARGE) else _blob(data)


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
