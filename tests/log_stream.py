"""What a daemon sends of a log."""

from __future__ import annotations

from collections.abc import Iterator


class LogStream:
    """A log in one piece; it can be closed, as the library's stream can."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        """Nothing more comes."""
