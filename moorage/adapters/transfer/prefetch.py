"""Prefetch of the next ranges of a large file; standard library only.

A download appends to its file in order. Meanwhile other connections fetch the next ranges into
memory, since one connection is rarely as fast as the network.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from moorage.adapters.transfer.piece import Piece
from moorage.adapters.transfer.range_answer import Answer, OpenRange

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
            self.give_back()

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

    def give_back(self) -> None:
        """Return a connection; its buffer may still be read."""
        with self._lock:
            self._spare += 1

    def reuse(self, buffer: bytearray) -> None:
        """Return a buffer that nobody reads or writes any more."""
        self._buffers.append(buffer)


class Prefetch:
    """The ranges of one file, to be opened in order.

    Args:
        after: Calls a function when the blocks that were read so far are not needed any more.
    """

    def __init__(
        self,
        open_range: OpenRange,
        size: int,
        connections: Connections,
        after: Callable[[Callable[[], None]], None],
    ) -> None:
        self._open_range, self._size, self._connections = open_range, size, connections
        self._after = after
        self._pieces: dict[int, Piece] = {}

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
            self._pieces[start] = Piece(self._open_range, start, stop, buffer)
            start = stop

    def _drop(self, start: int) -> None:
        buffer = self._pieces.pop(start).drop()
        self._connections.give_back()
        if buffer is not None:
            self._after(partial(self._connections.reuse, buffer))
