"""Threads for blocking calls, so that no cancellation or signal leaves an effect half done."""

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
"""How long a running effect may delay its undo; each effect has a shorter limit of its own."""

PYDANTIC_ERRORS = (SchemaError, PydanticSerializationError)
SIGNALLED = re.compile(r"\b(TerminationSignal|KeyboardInterrupt)\b")
"""Names of signals in pydantic's own errors."""

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call in a thread that does not keep the process alive.

    Unlike with `asyncio.to_thread`, a call that outlives its deadline does not delay the exit.
    """
    call: Future[R] = Future()
    _start(call, functools.partial(function, *args, **kwargs))
    return await asyncio.wrap_future(call)


def _start(call: Future[R], function: Callable[[], R]) -> None:
    """Run a function for a future in a daemon thread."""
    context, work = contextvars.copy_context(), functools.partial(complete, call, function)
    threading.Thread(target=context.run, args=(work,), daemon=True).start()


def complete(call: Future[R], function: Callable[[], R]) -> None:
    """Run a function for a future; it does not run if already cancelled."""
    if not call.set_running_or_notify_cancel():
        return
    try:
        call.set_result(function())
    except StopIteration as error:  # an asyncio future cannot carry it
        call.set_exception(RuntimeError(f"{function} raised {error!r}"))
    except BaseException as error:
        call.set_exception(error)


async def run_uninterrupted(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a blocking call with an outside effect; a cancelled caller first waits for its end.

    A thread cannot be cancelled. An undo that ran during the call would find nothing to undo, and
    the effect would stay. A call that has not begun when its caller is cancelled never runs.
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
    """Run a blocking call to its end even if signals arrive, such as Ctrl-C twice.

    Python raises exceptions of signals only in the main thread, so the call runs in another thread.
    Exceptions that arrive meanwhile are dropped: this is for callers that are already exiting.
    """
    context = contextvars.copy_context()
    running = threading.Lock()  # implemented in C: an exception cannot leave it half taken
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
        # Not `Thread.join`: after an interrupted join, the thread counts as ended.
        with contextlib.suppress(BaseException):
            running.acquire()


def was_interrupted(error: BaseException) -> bool:
    """Whether an error is an interruption, or an error that a library made of an interruption.

    Prefect turns a signal during the creation of a task run into a `ValueError`. A signal while
    pydantic builds a validator or serializes remains only as a name in pydantic's message.
    """
    if not isinstance(error, Exception):
        return True
    if isinstance(error, PYDANTIC_ERRORS) and SIGNALLED.search(str(error)):
        return True
    before = error.__context__
    # A time-out also raises `CancelledError` inside, without any signal.
    if before is None or isinstance(before, asyncio.CancelledError):
        return False
    return was_interrupted(before)


@asynccontextmanager
async def hold_lock(lock: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Hold a lock inside the block.

    A thread cannot be cancelled. A thread that still waits when its flow ends would take the lock
    later and hold it as long as the process lives, so it releases the lock as soon as it gets it.
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
    """Decorator: makes a blocking function awaitable by running it in a thread."""

    @functools.wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(function, *args, **kwargs)

    return run


@contextmanager
def variable_scope(variable: ContextVar[R], value: R) -> Iterator[None]:
    """Set a context variable to a value inside the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
