"""An HTTP answer with a deadline and a limit of bytes; standard library only."""

import http.client
import io
import math
import time
from collections.abc import Iterator
from typing import Any, overload

BLOCK, LARGE_BLOCK = 1 << 18, 1 << 20
"""Most bytes of one read: of one that allocates them, and of one into a buffer."""


class TimedAnswer(http.client.HTTPResponse):
    """An answer with a deadline; the standard library limits only each read.

    Args:
        seconds: How long the whole answer may take.
        most: How many bytes it may have, with its head.
    """

    def __init__(self, *given: Any, seconds: float, most: float = math.inf, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timed = _TimedRead(self.fp.detach(), time.monotonic() + seconds, most)
        self.fp = io.BufferedReader(self._timed)

    def readinto1(self, buffer: Any) -> int:
        """Read the bytes that are there into a buffer, at least one; 0 = the body has ended."""
        if self.chunked or self.fp is None:
            return super().readinto1(buffer)
        count = self.fp.readinto1(buffer if self.length is None else buffer[: self.length])
        if self.length is not None:
            self.length -= count
        return count

    def lift_deadline(self, seconds: float = math.inf) -> None:
        """Replace the limits: the rest may take so long, and have any length."""
        self._timed.until, self._timed.left = time.monotonic() + seconds, math.inf


class _TimedRead(io.RawIOBase):
    """Reads a number of bytes from another stream, until a time of the monotonic clock."""

    def __init__(self, raw: io.RawIOBase, until: float, left: float) -> None:
        self._raw, self.until, self.left = raw, until, left
        self._sock = getattr(raw, "_sock", None)  # Docker's library looks for it here

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self.until:
            raise TimeoutError("no answer in time")
        count = self._raw.readinto(buffer)
        self.left -= count or 0
        if self.left < 0:
            raise OSError("the answer is too long")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Headers by lower-case name."""
    return {name.lower(): value for name, value in answer.getheaders()}


@overload
def body_of(answer: http.client.HTTPResponse) -> Iterator[bytes]: ...


@overload
def body_of(
    answer: http.client.HTTPResponse, into: memoryview | None
) -> Iterator[bytes | memoryview]: ...


def body_of(
    answer: http.client.HTTPResponse, into: memoryview | None = None
) -> Iterator[bytes | memoryview]:
    """Blocks of the body as they arrive; raises `IncompleteRead` when it is cut short.

    If `into` is given, they are parts of it, one after the other, and end where it ends.
    """
    while answer.length != 0 and (block := _read(answer, into)):
        yield block
        if into is not None and not (into := into[len(block) :]):
            return
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


def _read(answer: http.client.HTTPResponse, into: memoryview | None) -> bytes | memoryview:
    return answer.read1(BLOCK) if into is None else into[: answer.readinto1(into[:LARGE_BLOCK])]
