"""The hub: repositories in memory, every request recorded, faults by file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from http.server import ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType

from tests.hub.faults import Fault, Request
from tests.hub.handler import Handler


class Hub:
    """A hub on loopback. Use it as a context manager.

    Args:
        repos: Files by repository, as the first commit of its branch `main`.
        token: If given, requests without it are refused.
        cdn: Whether large files are sent by a second host, as the real hub does.
        address: Where it listens.
    """

    def __init__(
        self,
        repos: Mapping[str, Mapping[str, bytes]],
        *,
        token: str | None = None,
        cdn: bool = False,
        address: str = "127.0.0.1",
    ) -> None:
        self._address = address
        self.token = token
        self.closed = False
        self.commits: dict[str, dict[str, dict[str, bytes]]] = {}
        self.branches: dict[str, dict[str, str]] = {}
        for repo, files in repos.items():
            self.push(repo, files)
        self.requests: list[Request] = []
        self._faults: dict[str, Fault] = {}
        self._lock = Lock()
        self._servers = {"hub": _serve(self, "hub", address)}
        if cdn:
            self._servers["cdn"] = _serve(self, "cdn", address)

    def __enter__(self) -> Hub:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering, on open connections too."""
        self.closed = True
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        return self.address("hub")

    def address(self, host: str) -> str:
        return f"http://{self._address}:{self._servers[host].server_address[1]}"

    @property
    def has_cdn(self) -> bool:
        return "cdn" in self._servers

    def push(self, repo: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Make a commit, and let the branch stand for it from now on."""
        content = [(name, hashlib.sha1(data).hexdigest()) for name, data in sorted(files.items())]
        commit = hashlib.sha1(repr(content).encode()).hexdigest()
        self.commits.setdefault(repo, {})[commit] = dict(files)
        self.branches.setdefault(repo, {})[branch] = commit
        return commit

    def fail(self, file: str, fault: Fault | None) -> None:
        """Let requests for a file fail from now on; `None` = no longer."""
        with self._lock:
            self._faults.pop(file, None)
            if fault:
                self._faults[file] = fault

    def fault_of(self, file: str) -> Fault:
        """The fault that hits this request, counted down."""
        with self._lock:
            fault = self._faults.get(file, Fault())
            if fault.times == 0:
                return Fault()
            if fault.times:
                self._faults[file] = replace(fault, times=fault.times - 1)
            return fault

    def requests_for(self, file: str) -> list[Request]:
        """The requests for one file that were answered by whoever sends it."""
        return [seen for seen in self.requests if seen.file == file and seen.status != 302]

    def sent(self, file: str) -> int:
        """Bytes of one file that were sent, in all."""
        return sum(seen.sent for seen in self.requests_for(file))


def _serve(hub: Hub, host: str, address: str) -> ThreadingHTTPServer:
    handler = type("Handler", (Handler,), {"hub": hub, "host": host})
    server = ThreadingHTTPServer((address, 0), handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server
