"""Handling of Ctrl-C, SIGTERM and a closed terminal while a command imports and runs."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.output import err, leave
from moorage.common.failures import Cause, Failure


@contextmanager
def nothing_begun(*, as_json: bool) -> Iterator[None]:
    """Exit at once on Ctrl-C: an exception raised during imports might be caught by a module."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is not signal.default_int_handler:
        yield
        return
    failure = Failure(Cause.INTERRUPTED, "stopped by a signal before anything was started")

    def end(*_: object) -> None:
        err.show_cursor()  # the status display has hidden it
        leave(failure, as_json=as_json, at_once=True)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """Let SIGTERM cancel this task, as Ctrl-C does, instead of raising at any line."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    cancel = task.cancel
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(cancel))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def ended_by_hangup() -> Iterator[None]:
    """Let a closed terminal act like SIGTERM, unless SIGHUP is ignored (`nohup`)."""
    before = signal.getsignal(signal.SIGHUP)
    if before == signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
