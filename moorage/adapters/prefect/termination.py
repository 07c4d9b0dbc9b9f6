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
"""Whether SIGTERM has arrived since the outermost flow began."""


@asynccontextmanager
async def cancelled_by_sigterm() -> AsyncIterator[None]:
    """Let SIGTERM cancel the task inside the block, which then raises Prefect's own exception.

    Prefect's handler would raise at any statement of the main thread, even right after a queue or
    a condition took its lock. The lock would stay taken, and the undo would wait for it forever
    when it logs. The tasks of subflows belong to the outermost flow, and are cancelled with it.

    Raises:
        TerminationSignal: SIGTERM has arrived, and the block has raised an exception.
    """
    global _cancel, _arrived
    if _cancel or threading.current_thread() is not threading.main_thread():
        yield
        return
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    left, _arrived = False, False

    def cancel() -> None:
        # A task that has left the block must not be cancelled during Prefect's work afterwards.
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
    """Whether SIGTERM is ending the current flow."""
    return _arrived and _cancel is not None


async def _forget_cancellation(task: asyncio.Task[object]) -> None:
    """Drop the pending Ctrl-C of the undo: it must not interrupt Prefect's report afterwards."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling():
        task.uncancel()


def _on_sigterm(number: int, *_: object) -> None:
    """Handle the first SIGTERM only: a second would interrupt the flow's end and its report."""
    global _arrived
    if _arrived:
        return
    if _cancel is None:
        raise TerminationSignal(signal=number)
    _arrived = True
    _cancel()


# Before a runner may end a run, Prefect checks under this name whether its handler is in place
# (`commit_control_intent_and_ack`), so this handler must have the name.
engine._prefect_sigterm_handler = _on_sigterm  # type: ignore[assignment]
