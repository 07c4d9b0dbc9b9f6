"""A piece of a large file, which a thread fetches into memory; standard library only."""

import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

from moorage.adapters.transfer.range_answer import Answer, DownloadError, OpenRange

STEP, STEP_SECONDS = 1 << 18, 0.5
"""Bytes that are handed over at once, unless they take longer: TLS brings 16 KiB at a time."""


class Piece:
    """A range that its own thread fetches."""

    def __init__(self, open_range: OpenRange, start: int, stop: int, buffer: bytearray) -> None:
        self._open_range, self._start, self.stop = open_range, start, stop
        self._buffer, self._is_dropped, self._is_full = buffer, False, False
        self._arrived = SimpleQueue[Answer | memoryview | Exception | None]()
        self._thread = threading.Thread(target=self._fetch, daemon=True)
        self._thread.start()

    def drop(self) -> bytearray | None:
        """Stop the fetch, and return the buffer; None = the thread still writes into it."""
        self._is_dropped = True
        if self._is_full:
            self._thread.join()  # returns at once: the thread only closes its answer
        return None if self._thread.is_alive() else self._buffer

    def answer(self) -> Answer:
        """Wait for the server's answer."""
        first = self._next()
        assert isinstance(first, Answer)
        return Answer(first.status, first.headers, self._blocks, self.stop)

    def _blocks(self, _into: memoryview | None) -> Iterator[memoryview]:
        while isinstance(block := self._next(), memoryview):
            yield block

    def _next(self) -> Answer | memoryview | None:
        arrived = self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def _fetch(self) -> None:
        ending: Exception | None = None
        try:
            with self._open_range(self._start, self.stop) as answer:
                if answer.status != 206:
                    raise DownloadError("hub-unavailable", "no range was sent", transient=True)
                self._arrived.put(answer)
                self._keep(answer)
        except Exception as error:  # raised later, by the reader of the piece
            ending = error
        self._arrived.put(ending)

    def _keep(self, answer: Answer) -> None:
        buffer, filled, handed = memoryview(self._buffer)[: self.stop - self._start], 0, 0
        until = time.monotonic() + STEP_SECONDS
        try:
            for block in answer.blocks(buffer):
                end = min(filled + len(block), len(buffer))
                if not isinstance(block, memoryview):
                    buffer[filled:end] = block[: end - filled]
                filled, self._is_full = end, end == len(buffer)
                if self._is_full or self._is_dropped:
                    return
                if filled - handed >= STEP or time.monotonic() > until:
                    self._arrived.put(buffer[handed:filled])
                    handed, until = filled, time.monotonic() + STEP_SECONDS
        finally:
            if filled > handed:
                self._arrived.put(buffer[handed:filled])
