"""Threads for calls that block: effects that no cancellation or signal leaves half done."""

import asyncio
import contextlib
import contextvars
import functools
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from pydantic_core import PydanticSerializationError, SchemaError

EFFECT_SECONDS = 3600.0
"""How long an effect that is under way may hold up its undo. Each has an end of its own before."""

PYDANTIC_ERRORS = (SchemaError, PydanticSerializationError)
SIGNALLED = re.compile(r"\b(TerminationSignal|KeyboardInterrupt)\b")
"""Signals as pydantic names them in errors of its own."""

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call in a thread that does not keep the process alive.

    Unlike with `asyncio.to_thread`, a call that outlives its deadline does not delay the end.
    """
    call: Future[R] = Future()
    _start(call, functools.partial(function, *args, **kwargs))
    return await asyncio.wrap_future(call)


def _start(call: Future[R], function: Callable[[], R]) -> None:
    """Run a function in a daemon thread and settle the future; a cancelled one never runs."""

    def work() -> None:
        if not call.set_running_or_notify_cancel():
            return
        try:
            call.set_result(function())
        except StopIteration as error:  # which an asyncio future cannot carry
            call.set_exception(RuntimeError(f"{function} raised {error!r}"))
        except BaseException as error:
            call.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()


async def run_uninterrupted(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call that changes something outside; it is never left half done.

    A thread cannot be cancelled. So whoever is cancelled meanwhile waits for the call's end first:
    an undo that ran during its effect would find nothing to undo, and the effect would stay. A call
    that had not begun then never does.
    """
    call: Future[R] = Future()

    def settle() -> None:
        if not call.cancel():
            wait([call], EFFECT_SECONDS)

    try:
        _start(call, functools.partial(function, *args, **kwargs))
        return await asyncio.wrap_future(call)
    except BaseException:
        run_shielded(settle)
        raise


def run_shielded(function: Callable[[], None]) -> None:
    """Run a blocking call to its end, though signals arrive, such as Ctrl-C twice.

    Python raises what a signal brings in the main thread only, so the call runs in another. What
    is raised here meanwhile is dropped: this is for a caller that is on its way out already.
    """
    context = contextvars.copy_context()
    running = threading.Lock()  # a lock of C: an exception cannot leave it half taken
    running.acquire()
    ended = False

    def work() -> None:
        nonlocal ended
        try:
            context.run(function)
        finally:
            ended = True
            running.release()

    threading.Thread(target=work).start()
    while not ended:
        # Not `Thread.join`: a join that an exception interrupts takes the thread for ended.
        with contextlib.suppress(BaseException):
            running.acquire()


def was_interrupted(error: BaseException) -> bool:
    """Whether an error is an interruption, or what Prefect made of one.

    A signal that arrives while Prefect makes a task run ends in a `ValueError` of its own; of one
    that arrives while pydantic makes a validator or serializes, only the name is left.
    """
    if not isinstance(error, Exception):
        return True
    if isinstance(error, PYDANTIC_ERRORS) and SIGNALLED.search(str(error)):
        return True
    before = error.__context__
    # A time-out is a cancellation inside, and nobody's signal.
    if before is None or isinstance(before, asyncio.CancelledError):
        return False
    return was_interrupted(before)


@asynccontextmanager
async def hold_lock(lock: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Hold a lock inside the block.

    A thread cannot be cancelled. One that still waits after the end of its flow would take the lock
    later, and keep it as long as the process lives. So it gives the lock back at once.
    """
    taking: Future[None] = Future()

    def give_back(taken: Future[None]) -> None:
        if not taken.cancelled() and taken.exception() is None:
            lock.__exit__(None, None, None)

    def leave() -> None:
        if taking.done():
            give_back(taking)
        else:
            taking.add_done_callback(give_back)

    try:
        _start(taking, lock.__enter__)
        await asyncio.wrap_future(taking)
        yield
    finally:
        await run_uninterrupted(leave)


def threaded(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Decorator: a blocking function that is awaited, and runs in a thread."""

    @functools.wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(function, *args, **kwargs)

    return run


@contextmanager
def variable_scope(variable: ContextVar[R], value: R) -> Iterator[None]:
    """Let a context variable have a value inside the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
