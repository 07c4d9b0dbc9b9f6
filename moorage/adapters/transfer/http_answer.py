"""An HTTP answer with a deadline for its head; standard library only."""

import http.client
import io
import math
import time
from collections.abc import Iterator
from typing import Any

BLOCK = 1 << 18
"""Most bytes of one read."""


class TimedAnswer(http.client.HTTPResponse):
    """An answer with a deadline; the standard library limits only each read."""

    def __init__(self, *given: Any, seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timed = _TimedRead(self.fp.detach(), time.monotonic() + seconds)
        self.fp = io.BufferedReader(self._timed)

    def lift_deadline(self) -> None:
        """Remove the deadline, so that the body may take any time."""
        self._timed.until = math.inf


class _TimedRead(io.RawIOBase):
    """Reads from another stream until a time of the monotonic clock."""

    def __init__(self, raw: io.RawIOBase, until: float) -> None:
        self._raw, self.until = raw, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self.until:
            raise TimeoutError("no answer in time")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def headers_of(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Headers by lower-case name."""
    return {name.lower(): value for name, value in answer.getheaders()}


def body_of(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Blocks of the body as they arrive; raises `IncompleteRead` when it is cut short."""
    while answer.length != 0 and (block := answer.read1(BLOCK)):
        yield block
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
