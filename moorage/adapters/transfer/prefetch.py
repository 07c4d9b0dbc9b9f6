"""Prefetch of the next ranges of a large file; standard library only.

A download appends to its file in order. Meanwhile other connections fetch the next ranges into
memory, since one connection is rarely as fast as the network.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from moorage.adapters.transfer.range_answer import Answer, DownloadError, OpenRange

PIECE = 8 << 20
"""Most bytes of a range that is held in memory."""

MOST_CONNECTIONS = 8
"""Limit on the pieces in memory: a helper container on a host has 512 MiB in total."""

LONGEST = 256 << 20
"""Most bytes of a request without a spare connection; afterwards there may be one."""


class Connections:
    """Connections that the downloads of one model share, each with a buffer for a piece.

    Args:
        most: How many there are. A file's own connection is always granted and needs no buffer.
    """

    def __init__(self, most: int) -> None:
        self._spare, self._lock = min(most, MOST_CONNECTIONS), threading.Lock()
        self._buffers: list[bytearray] = []

    @contextmanager
    def own(self) -> Iterator[None]:
        """Count the own connection of a file that is downloaded inside the block."""
        with self._lock:
            self._spare -= 1
        try:
            yield
        finally:
            self._spare_one()

    @property
    def is_spare(self) -> bool:
        """Whether a connection is spare."""
        return self._spare > 0

    def take(self) -> bytearray | None:
        """Take a spare connection, and return its buffer; None = none is spare."""
        with self._lock:
            if not self.is_spare:
                return None
            self._spare -= 1
            return self._buffers.pop() if self._buffers else bytearray(PIECE)

    def give_back(self, buffer: bytearray | None) -> None:
        """Return a connection; None = a thread still writes into its buffer."""
        if buffer is not None:
            self._buffers.append(buffer)
        self._spare_one()

    def _spare_one(self) -> None:
        with self._lock:
            self._spare += 1


class Prefetch:
    """The ranges of one file, to be opened in order."""

    def __init__(self, open_range: OpenRange, size: int, connections: Connections) -> None:
        self._open_range, self._size, self._connections = open_range, size, connections
        self._pieces: dict[int, _Piece] = {}

    @contextmanager
    def open(self, start: int) -> Iterator[Answer]:
        """An answer with bytes from an offset on, to be read inside the block.

        Raises:
            DownloadError: As `open_range` does; the next call may continue at the reached offset.
        """
        for passed in [at for at in self._pieces if at < start]:
            self._drop(passed)
        if start in self._pieces:
            try:
                answer = self._pieces[start].answer()
                self._fill(start)
                yield answer
            finally:
                self._drop(start)
            return
        stop = self._stop(start)
        with self._open_range(start, stop) as answer:
            if answer.status == 206:  # a server that sends whole files would do so for every piece
                self._fill(stop)
            yield answer

    def close(self) -> None:
        """Drop all pieces that were fetched ahead."""
        for start in list(self._pieces):
            self._drop(start)

    def _stop(self, start: int) -> int:
        """End of the range that begins at an offset."""
        longest = PIECE if self._connections.is_spare else LONGEST
        return min(self._size, start + longest, *self._pieces)

    def _fill(self, start: int) -> None:
        """Start to fetch the next pieces, as many as there are spare connections."""
        start = max((piece.stop for piece in self._pieces.values()), default=start)
        while start < self._size and (buffer := self._connections.take()) is not None:
            stop = min(start + len(buffer), self._size)
            self._pieces[start] = _Piece(self._open_range, start, stop, buffer)
            start = stop

    def _drop(self, start: int) -> None:
        self._connections.give_back(self._pieces.pop(start).drop())


class _Piece:
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
        return Answer(first.status, first.headers, self._blocks(), self.stop)

    def _blocks(self) -> Iterator[memoryview]:
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
                self._keep(answer.blocks)
        except Exception as error:  # raised later, by the reader of the piece
            ending = error
        self._arrived.put(ending)

    def _keep(self, blocks: Iterator[bytes | memoryview]) -> None:
        empty = memoryview(self._buffer)[: self.stop - self._start]
        for block in blocks:
            kept, empty = empty[: len(block)], empty[len(block) :]
            kept[:] = block[: len(kept)]
            self._is_full = not empty
            self._arrived.put(kept)
            if self._is_full or self._is_dropped:
                return
