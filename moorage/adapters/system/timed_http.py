"""HTTP with one deadline for all reads; the libraries themselves limit only each read.

It works with httpx and httpx2; newer clients of the hub use the latter.
"""

import time
from collections.abc import Callable
from typing import Any

Until = Callable[[], float | None]
"""Returns the deadline on the monotonic clock; None = no deadline."""


class TimedBackend:
    """Connects as the library does, and stops reading at a deadline."""

    def __init__(self, inner: Any, library: Any, until: Until) -> None:
        self._inner, self._library, self._until = inner, library, until

    def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> Any:
        """Open a connection."""
        connected = self._inner.connect_tcp(host, port, *more, **named)
        return _TimedStream(connected, self._library, self._until)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TimedStream:
    """A connection that stops reading at a deadline."""

    def __init__(self, inner: Any, library: Any, until: Until) -> None:
        self._inner, self._library, self._until = inner, library, until

    def read(self, most: int, timeout: float | None = None) -> bytes:
        """Read the available bytes."""
        return bytes(self._inner.read(most, timeout=self._left(timeout)))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        """Start TLS with the host name, not with the address."""
        inner = self._inner.start_tls(ssl_context, server_hostname, self._left(timeout))
        return _TimedStream(inner, self._library, self._until)

    def _left(self, timeout: float | None) -> float | None:
        until = self._until()
        if until is None:
            return timeout
        left = until - time.monotonic()
        if left <= 0:  # checked here, since data that is always available never times out
            raise self._library.ReadTimeout("no whole answer in time")
        return left if timeout is None else min(timeout, left)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
