"""A checksum that is computed while the next bytes of its file arrive; standard library only."""

from collections.abc import Callable
from queue import Queue
from threading import Thread

from moorage.adapters.transfer.checksum import Checksum, File

STEP = 1 << 18
"""Bytes that the thread gets at once: a hand-over costs about as much as hashing 16 KiB."""

MOST_STEPS = 16
"""Most hand-overs that wait for the thread. It limits the buffers that are not free yet."""

Step = list[bytes | memoryview] | Callable[[], None] | None
"""Blocks to add, a function to call, or the end."""


class OverlappedChecksum(Checksum):
    """A checksum that a thread may compute. Without later blocks there is no thread."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._blocks, self._bytes = list[bytes | memoryview](), 0
        self._steps = Queue[Step](MOST_STEPS)
        self._thread: Thread | None = None

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self._settle()
        super().update(data)

    def update_later(self, block: bytes | memoryview) -> None:
        """Add the next bytes in the thread; they must stay as they are until then (`after`)."""
        self.size += len(block)
        self._blocks.append(block)
        self._bytes += len(block)
        if self._bytes >= STEP:
            self._hand_over()

    def after(self, call: Callable[[], None]) -> None:
        """Call a function that does not raise, when all bytes so far are added."""
        if not self._blocks and not self._thread:
            return call()
        self._hand_over()
        return self._steps.put(call)

    def mismatch(self) -> str:
        """Difference from the announced checksum, in words; empty = none."""
        self._settle()
        return super().mismatch()

    def close(self) -> None:
        """End the thread, after all that it was given."""
        if self._thread:
            self._settle()
            self._steps.put(None)
            self._thread.join()
            self._thread = None

    def _settle(self) -> None:
        if self._thread or self._blocks:
            self._hand_over()
            self._steps.join()

    def _hand_over(self) -> None:
        if not self._thread:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        self._steps.put(self._blocks)
        self._blocks, self._bytes = [], 0

    def _run(self) -> None:
        while (step := self._steps.get()) is not None:
            if callable(step):
                step()
            else:
                for block in step:
                    self.add(block)
            self._steps.task_done()
