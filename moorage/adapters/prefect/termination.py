"""SIGTERM while a flow runs cancels it at its next await, and interrupts no statement."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prefect.exceptions import TerminationSignal
from prefect.utilities import engine

_cancel: Callable[[], None] | None = None
"""Cancels the outermost flow of this process."""


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """Let SIGTERM cancel the task inside the block; what leaves it is Prefect's own exception.

    Prefect's handler raises wherever the main thread is, also right after a queue or a condition
    took its lock. The lock stays taken then, and the undo waits for it for ever when it logs. The
    tasks of subflows belong to the outermost flow, and are cancelled with it.

    Raises:
        TerminationSignal: SIGTERM has come.
    """
    global _cancel
    if _cancel:
        yield
        return
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    arrived = left = False

    def cancel() -> None:
        nonlocal arrived
        arrived = True
        # A task that leaves meanwhile must not be cancelled in what Prefect does after it.
        loop.call_soon_threadsafe(lambda: left or task.cancel())

    _cancel = cancel
    try:
        yield
    except asyncio.CancelledError as error:
        if not arrived:
            raise
        task.uncancel()
        raise TerminationSignal(signal=signal.SIGTERM) from error
    finally:
        left, _cancel = True, None


def _on_sigterm(number: int, *_: object) -> None:
    if _cancel is None:
        raise TerminationSignal(signal=number)
    _cancel()


# By this name Prefect asks whether its handler is still in place before a runner may end a run
# (`commit_control_intent_and_ack`), so a handler of ours has to stand under it.
engine._prefect_sigterm_handler = _on_sigterm  # type: ignore[assignment]
