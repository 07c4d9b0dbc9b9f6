"""A checksum that is computed while the next bytes of its file arrive; standard library only."""

from collections.abc import Callable
from queue import Queue
from threading import Thread

from moorage.adapters.transfer.checksum import Checksum, File

MOST_STEPS = 16
"""Most steps that wait for the thread. It limits the buffers that are not free yet."""

Step = bytes | memoryview | Callable[[], None] | None
"""A block to add, a function to call, or the end."""


class OverlappedChecksum(Checksum):
    """A checksum that a thread may compute. Without later blocks there is no thread."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._steps = Queue[Step](MOST_STEPS)
        self._thread: Thread | None = None

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self._steps.join()
        super().update(data)

    def update_later(self, block: bytes | memoryview) -> None:
        """Add the next bytes in the thread; they must stay as they are until then (`after`)."""
        if not self._thread:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        self.size += len(block)
        self._steps.put(block)

    def after(self, call: Callable[[], None]) -> None:
        """Call a function that does not raise, when all bytes so far are added."""
        if self._thread:
            self._steps.put(call)
        else:
            call()

    def mismatch(self) -> str:
        """Difference from the announced checksum, in words; empty = none."""
        self._steps.join()
        return super().mismatch()

    def close(self) -> None:
        """End the thread, after all that it was given."""
        if self._thread:
            self._steps.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (step := self._steps.get()) is not None:
            if callable(step):
                step()
            else:
                self.add(step)
            self._steps.task_done()
        self._steps.task_done()
