"""SIGTERM while a flow runs cancels it at its next await, and interrupts no statement."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from prefect.exceptions import TerminationSignal
from prefect.utilities import engine

_cancel: Callable[[], None] | None = None
"""Cancels the outermost flow of the main thread."""

_arrived = False
"""Whether SIGTERM has come since the outermost flow began."""


@asynccontextmanager
async def cancelled_by_sigterm() -> AsyncIterator[None]:
    """Let SIGTERM cancel the task inside the block; what leaves it is Prefect's own exception.

    Prefect's handler raises wherever the main thread is, also right after a queue or a condition
    took its lock. The lock stays taken then, and the undo waits for it for ever when it logs. The
    tasks of subflows belong to the outermost flow, and are cancelled with it.

    Raises:
        TerminationSignal: SIGTERM has come, and the block did not end as if it had not.
    """
    global _cancel, _arrived
    if _cancel or threading.current_thread() is not threading.main_thread():
        yield
        return
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    left, _arrived = False, False

    def cancel() -> None:
        # A task that leaves meanwhile must not be cancelled in what Prefect does after it.
        loop.call_soon_threadsafe(lambda: left or task.cancel())

    _cancel = cancel
    try:
        yield
    except BaseException as error:
        if not _arrived:
            raise
        await _forget_cancellation(task)
        raise TerminationSignal(signal=signal.SIGTERM) from error
    finally:
        left, _cancel = True, None


def is_terminating() -> bool:
    """Whether SIGTERM is what ends the flow that runs now."""
    return _arrived and _cancel is not None


async def _forget_cancellation(task: asyncio.Task[object]) -> None:
    """Ctrl-C during the undo is still due; it must not end what Prefect reports afterwards."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling():
        task.uncancel()


def _on_sigterm(number: int, *_: object) -> None:
    """The first one counts: a second would cut short how the flow ends and reports it."""
    global _arrived
    if _arrived:
        return
    if _cancel is None:
        raise TerminationSignal(signal=number)
    _arrived = True
    _cancel()


# By this name Prefect asks whether its handler is still in place before a runner may end a run
# (`commit_control_intent_and_ack`), so a handler of ours has to stand under it.
engine._prefect_sigterm_handler = _on_sigterm  # type: ignore[assignment]
