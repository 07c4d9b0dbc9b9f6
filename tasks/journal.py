"""The journal of a flow run: each step with its time and a line of what it found.

The flow opens it, tasks write into it, and whoever listens (the command line, the run's log) is
notified at once.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Protocol

from moorage.adapters.prefect.api_errors import server_failure
from moorage.adapters.secrets import redact, redact_failure
from moorage.adapters.system.threads import variable_scope
from moorage.common.failures import Cause, Failure
from moorage.common.saga import HARMLESS
from moorage.releases.release import StepRecord


class Listener(Protocol):
    """Hears what happens in a flow."""

    def started(self, step: str) -> None:
        """A step has begun."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """So many bytes of a step are done."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """A step has ended."""

    def noted(self, text: str) -> None:
        """Something a person should know."""


class Note:
    """What a step says about itself."""

    def __init__(self, step: str, listeners: list[Listener]) -> None:
        self.summary = ""
        self.failed: Failure | None = None
        self._step, self._listeners = step, listeners

    def say(self, summary: str) -> None:
        """Set the line that stands for the step."""
        self.summary = summary

    def fail(self, failure: Failure) -> None:
        """Let the step end as failed, though its result is handed on; the caller raises."""
        self.failed = redact_failure(failure)

    def progress(self, done: int, total: int) -> None:
        """Tell how many bytes are done."""
        for listener in self._listeners:
            listener.progressed(self._step, done, total)


class Journal:
    """The steps of one flow run."""

    def __init__(self, listeners: list[Listener]) -> None:
        self.steps: list[StepRecord] = []
        self.listeners = listeners

    def tell(self, text: str) -> None:
        """Tell the listeners something outside any step; what is done does not depend on it."""
        for listener in self.listeners:
            with suppress(*HARMLESS):
                listener.noted(redact(text))


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_JOURNAL: ContextVar[Journal | None] = ContextVar("journal", default=None)


class _PrefixedListener:
    """Hands on what it hears, each step under the name of the flow that it belongs to."""

    def __init__(self, listener: Listener, name: str) -> None:
        self._listener, self._name = listener, name

    def started(self, step: str) -> None:
        self._listener.started(self._label(step))

    def progressed(self, step: str, done: int, total: int) -> None:
        self._listener.progressed(self._label(step), done, total)

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        named = record.model_copy(update={"name": self._label(record.name)})
        self._listener.ended(named, error)

    def noted(self, text: str) -> None:
        self._listener.noted(self._label(text))

    def _label(self, text: str) -> str:
        return f"{self._name}: {text}"


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Let a listener hear every flow that runs inside the block."""
    return variable_scope(_LISTENERS, (*_LISTENERS.get(), listener))


def listen_as(name: str) -> AbstractContextManager[None]:
    """Let listeners hear the flows inside the block under a name: several run at once."""
    named = tuple(_PrefixedListener(one, name) for one in _LISTENERS.get())
    return variable_scope(_LISTENERS, named)


@contextmanager
def journal(*own: Listener) -> Iterator[Journal]:
    """Open the journal of a flow run, whose own listener writes the run's log."""
    opened = Journal([*own, *_LISTENERS.get()])
    with variable_scope(_JOURNAL, opened):
        yield opened


@contextmanager
def separate_journal() -> Iterator[Journal]:
    """Let the steps inside the block be heard as before, but belong to a journal of their own."""
    current = _JOURNAL.get()
    opened = Journal(current.listeners if current else [])
    with variable_scope(_JOURNAL, opened):
        yield opened


def failure_of(error: BaseException) -> Failure | None:
    """The failure that an error of a flow stands for; None = a mistake of ours, or a signal.

    The time-out of a task is a failure that names the step.
    """
    if isinstance(error, Failure):
        return error
    if failure := server_failure(error):
        return failure
    if not isinstance(error, TimeoutError):
        return None
    current = _JOURNAL.get()
    last = current.steps[-1].name if current and current.steps else "start"
    return Failure(Cause.STEP_TIMEOUT, f"{last}: {error}")


def tell(text: str) -> None:
    """Tell the listeners of the flow that runs now something outside any step."""
    if current := _JOURNAL.get():
        current.tell(text)


def mute_steps() -> AbstractContextManager[None]:
    """Let nobody hear the steps inside the block: of many models they are too many to read."""
    return variable_scope(_JOURNAL, None)


def within(name: str) -> AbstractContextManager[Note]:
    """A part of a step that is under way: it tells progress, and is no step of its own."""
    current = _JOURNAL.get()
    return nullcontext(Note(name, current.listeners if current else []))


@contextmanager
def step(name: str) -> Iterator[Note]:
    """Time a step and write it into the journal, however it ends; its failure tells no secret."""
    current = _JOURNAL.get() or Journal([])
    note = Note(name, current.listeners)
    for listener in current.listeners:
        listener.started(name)
    begin, failed = time.monotonic(), None
    try:
        yield note
    except BaseException as error:
        # Prefect writes down whatever leaves a task, so this is the last place before it.
        failed = redact_failure(error) if isinstance(error, Failure) else error
        raise
    finally:
        record = StepRecord(
            name=name, seconds=round(time.monotonic() - begin, 3), summary=redact(note.summary)
        )
        current.steps.append(record)
        for listener in current.listeners:
            listener.ended(record, failed or note.failed)
