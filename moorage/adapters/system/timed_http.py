"""HTTP with one deadline for all reads; httpx itself limits only each read."""

import time
from collections.abc import Callable
from typing import Any

import httpx

Until = Callable[[], float | None]
"""Returns the deadline on the monotonic clock; None = no deadline."""


class TimedBackend:
    """Connects as httpx does, and stops reading at a deadline."""

    def __init__(self, inner: Any, until: Until) -> None:
        self._inner, self._until = inner, until

    def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> Any:
        """Open a connection."""
        connected = self._inner.connect_tcp(host, port, *more, **named)
        return _TimedStream(connected, self._until)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TimedStream:
    """A connection that stops reading at a deadline."""

    def __init__(self, inner: Any, until: Until) -> None:
        self._inner, self._until = inner, until

    def read(self, most: int, timeout: float | None = None) -> bytes:
        """Read the available bytes."""
        return bytes(self._inner.read(most, timeout=self._left(timeout)))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        """Start TLS with the host name, not with the address."""
        inner = self._inner.start_tls(ssl_context, server_hostname, self._left(timeout))
        return _TimedStream(inner, self._until)

    def _left(self, timeout: float | None) -> float | None:
        until = self._until()
        if until is None:
            return timeout
        left = until - time.monotonic()
        if left <= 0:  # checked here, since data that is always available never times out
            raise httpx.ReadTimeout("no whole answer in time")
        return left if timeout is None else min(timeout, left)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
