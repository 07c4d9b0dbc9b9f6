"""Handling of Ctrl-C, SIGTERM and a closed terminal while a command imports and runs."""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moorage.cli.output import err, leave
from moorage.common.failures import Cause, Failure

INTERRUPTED = "interrupted: the running step ends first, then unfinished work is undone"


@contextmanager
def heard_by(handler: Callable[..., Any], numbers: Iterable[int]) -> Iterator[None]:
    """Let the handler hear these signals in the block, and the former handlers after it."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def nothing_begun(*, as_json: bool) -> Iterator[None]:
    """Exit at once on Ctrl-C: an exception raised during imports might be caught by a module."""
    failure = Failure(Cause.INTERRUPTED, "stopped by a signal before anything was started")

    def end(*_: object) -> None:
        err.show_cursor()  # the status display has hidden it
        leave(failure, as_json=as_json, at_once=True)

    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with heard_by(end, [signal.SIGINT] if heard else []):
        yield


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """Let SIGTERM cancel this task, as Ctrl-C does, instead of raising at any line."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    cancel = task.cancel
    with heard_by(lambda *_: loop.call_soon_threadsafe(cancel), [signal.SIGTERM]):
        yield


@contextmanager
def announced_interrupt(announce: Callable[[str], None]) -> Iterator[None]:
    """Announce the first Ctrl-C at once: a step may take a while to end, and so may its undo."""
    loop, interrupt = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    left = [INTERRUPTED]

    def hear(*signalled: Any) -> None:
        if left:
            # Not printed here: a signal may come in the middle of a line.
            loop.call_soon_threadsafe(announce, left.pop())
        if callable(interrupt):
            interrupt(*signalled)

    with heard_by(hear, [signal.SIGINT] if callable(interrupt) else []):
        yield


@contextmanager
def ended_by_hangup() -> Iterator[None]:
    """Let a closed terminal act like SIGTERM, unless SIGHUP is ignored (`nohup`)."""
    heard = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    numbers = [signal.SIGHUP] if heard else []
    with heard_by(lambda *_: signal.raise_signal(signal.SIGTERM), numbers):
        yield
