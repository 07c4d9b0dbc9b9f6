"""Answers of daemons in HTTP/1.1: the standard library takes twice the time to read one."""

import io
import socket
import time
from collections.abc import Iterator

MOST_LINE, MOST_HEADERS = 65_536, 100


class AnswerReader:
    """Reads one answer after the other from a connection.

    Args:
        connection: Its own limit is for each piece of an answer.
        seconds: How long a whole answer may take.
        most: Bytes that a body may have.
    """

    def __init__(self, connection: socket.socket, seconds: float, most: int) -> None:
        self._timed = _TimedRead(connection)
        self._stream = io.BufferedReader(self._timed)
        self._seconds, self._most = seconds, most

    def read(self) -> tuple[int, str, bytes]:
        """Status, its reason, and body.

        Raises:
            ValueError: It is no answer, cut short, or too long.
            OSError: The connection is lost, or the answer is late.
        """
        self._timed.until = time.monotonic() + self._seconds
        version, status, reason = f"{self._line()}  ".split(" ", 2)
        if not version.startswith("HTTP/"):
            raise ValueError(f"its answer is not HTTP: {version[:80]!r}")
        headers = dict(self._headers())
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(self._chunks())
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            body = self._stream.read(self._most + 1)
            self._require_short(len(body))
        return int(status), reason.strip(), body

    def _headers(self) -> Iterator[tuple[str, str]]:
        for _ in range(MOST_HEADERS):
            if not (line := self._line()):
                return
            name, _, value = line.partition(":")
            yield name.lower(), value.strip()
        raise ValueError(f"its answer has more than {MOST_HEADERS} headers")

    def _chunks(self) -> Iterator[bytes]:
        left = self._most
        while size := int(self._line().partition(";")[0], 16):
            self._require_short(size + self._most - left)
            yield self._exactly(size)
            left -= size
            self._line()
        dict(self._headers())  # trailers end with an empty line, too

    def _exactly(self, size: int) -> bytes:
        self._require_short(size)
        body = self._stream.read(size)
        if len(body) < size:
            raise ValueError("its answer is cut short")
        return body

    def _require_short(self, size: int) -> None:
        if not 0 <= size <= self._most:
            raise ValueError(f"its answer has more than {self._most:,} bytes")

    def _line(self) -> str:
        line = self._stream.readline(MOST_LINE)
        if not line.endswith(b"\n"):
            raise ValueError(f"its answer ends in {line[:80]!r}" if line else "it does not answer")
        return line.decode("latin-1").strip()


class _TimedRead(io.RawIOBase):
    """What comes on a connection, until a time by the monotonic clock."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.until = connection, 0.0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: object) -> int:
        """Receive what there is."""
        if time.monotonic() > self.until:
            raise TimeoutError("no answer in time")
        return self._connection.recv_into(buffer)  # type: ignore[arg-type]
