"""A lock of the ledger, held by a flow: taken and given back in threads, whatever interrupts it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

from tasks.context import in_full, in_thread


@asynccontextmanager
async def held(lock: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Hold a lock inside the block.

    A thread cannot be cancelled: one that still waits when its flow has gone would take the lock
    later, and keep it for as long as the process lives. So it gives it back at once then.

    Args:
        lock: As `Locks.holding` gives it.
    """
    guard, gone, taken = threading.Lock(), threading.Event(), threading.Event()

    def take() -> None:
        lock.__enter__()
        with guard:
            if not gone.is_set():
                taken.set()
                return
        lock.__exit__(None, None, None)

    def leave() -> None:
        with guard:
            gone.set()
        if taken.is_set():
            lock.__exit__(None, None, None)

    try:
        await in_thread(take)
        yield
    finally:
        await in_full(leave)
