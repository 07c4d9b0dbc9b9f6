"""A stand-in for a daemon's log stream."""

from __future__ import annotations

from collections.abc import Iterator


class LogStream:
    """A log in one piece, with the library's method `close`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        """Do nothing."""
