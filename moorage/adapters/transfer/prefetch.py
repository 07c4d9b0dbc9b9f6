"""Ranges of a large file that are fetched before they are needed; standard library only.

A download appends to its file in order. What comes next is fetched meanwhile, by other connections
into memory, since one connection is rarely as fast as the network.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from moorage.adapters.transfer.range_answer import Answer, DownloadError, OpenRange

PIECE = 8 << 20
"""Bytes of a range that is held in memory."""

LONGEST = 256 << 20
"""Bytes of a request while no connection is spare: soon one may be."""


class Connections:
    """The connections that the downloads of one model share.

    Args:
        most: How many there are; a file's own is always granted.
    """

    def __init__(self, most: int) -> None:
        self._spare, self._lock = most, threading.Lock()

    @contextmanager
    def own(self) -> Iterator[None]:
        """Count the connection of a file that is downloaded inside the block."""
        with self._lock:
            self._spare -= 1
        try:
            yield
        finally:
            self.give_back()

    @property
    def is_spare(self) -> bool:
        """Whether there is one to take."""
        return self._spare > 0

    def take(self) -> bool:
        """Take a spare one; False = there is none."""
        with self._lock:
            if not self.is_spare:
                return False
            self._spare -= 1
            return True

    def give_back(self) -> None:
        """Make one spare."""
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
            DownloadError: As the request; the next one begins anew where it ended.
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
            if answer.status == 206:  # a server that sends all would do so for every piece
                self._fill(stop)
            yield answer

    def close(self) -> None:
        """Forget what was fetched and is not needed."""
        for start in list(self._pieces):
            self._drop(start)

    def _stop(self, start: int) -> int:
        """Where a range ends that begins at an offset."""
        longest = PIECE if self._connections.is_spare else LONGEST
        return min(self._size, start + longest, *self._pieces)

    def _fill(self, start: int) -> None:
        """Fetch what follows, as far as connections are spare."""
        start = max((piece.stop for piece in self._pieces.values()), default=start)
        while start < self._size and self._connections.take():
            stop = min(start + PIECE, self._size)
            self._pieces[start] = _Piece(self._open_range, start, stop)
            start = stop

    def _drop(self, start: int) -> None:
        self._pieces.pop(start).is_dropped = True
        self._connections.give_back()


class _Piece:
    """A range that a thread of its own fetches."""

    def __init__(self, open_range: OpenRange, start: int, stop: int) -> None:
        self._open_range, self._start, self.stop = open_range, start, stop
        self.is_dropped = False
        self._arrived = SimpleQueue[Answer | bytes | Exception | None]()
        threading.Thread(target=self._fetch, daemon=True).start()

    def answer(self) -> Answer:
        """The server's answer, once it is here."""
        first = self._next()
        assert isinstance(first, Answer)
        return Answer(first.status, first.headers, self._blocks(), self.stop)

    def _blocks(self) -> Iterator[bytes]:
        while isinstance(block := self._next(), bytes):
            yield block

    def _next(self) -> Answer | bytes | None:
        arrived = self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def _fetch(self) -> None:
        left = self.stop - self._start
        try:
            with self._open_range(self._start, self.stop) as answer:
                if answer.status != 206:
                    raise DownloadError("hub-unavailable", "no range was sent", transient=True)
                self._arrived.put(answer)
                for block in answer.blocks:
                    self._arrived.put(block[:left])
                    left -= len(block)
                    if left <= 0 or self.is_dropped:
                        break
            self._arrived.put(None)
        except Exception as error:  # it is raised where the piece is needed
            self._arrived.put(error)
