"""The journal of a flow run: each step with its duration and a one-line summary.

The flow opens it, tasks write into it, and listeners (the command line, the run's log) are notified
at once.
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
    """Receives the events of a flow."""

    def started(self, step: str) -> None:
        """A step has begun."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """A step has done `done` of `total` bytes."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """A step has ended."""

    def noted(self, text: str) -> None:
        """A message for a person, outside any step."""


class Note:
    """Summary, failure and progress that a step reports."""

    def __init__(self, step: str, listeners: list[Listener]) -> None:
        self.summary = ""
        self.failed: Failure | None = None
        self._step, self._listeners = step, listeners

    def say(self, summary: str) -> None:
        """Set the step's summary line."""
        self.summary = summary

    def fail(self, failure: Failure) -> None:
        """Mark the step as failed although it returns a result; its caller raises."""
        self.failed = redact_failure(failure)

    def progress(self, done: int, total: int) -> None:
        """Report how many bytes are done."""
        for listener in self._listeners:
            listener.progressed(self._step, done, total)


class Journal:
    """The steps of one flow run."""

    def __init__(self, listeners: list[Listener]) -> None:
        self.steps: list[StepRecord] = []
        self.listeners = listeners

    def tell(self, text: str) -> None:
        """Send listeners a message outside any step; errors of a listener are ignored."""
        for listener in self.listeners:
            with suppress(*HARMLESS):
                listener.noted(redact(text))


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_JOURNAL: ContextVar[Journal | None] = ContextVar("journal", default=None)


class _PrefixedListener:
    """Passes events on, each step prefixed with the name of its flow."""

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
    """Add a listener to every flow that runs inside the block."""
    return variable_scope(_LISTENERS, (*_LISTENERS.get(), listener))


def listen_as(name: str) -> AbstractContextManager[None]:
    """Prefix the events of flows inside the block with a name, since several flows run at once."""
    named = tuple(_PrefixedListener(one, name) for one in _LISTENERS.get())
    return variable_scope(_LISTENERS, named)


@contextmanager
def journal(*own: Listener) -> Iterator[Journal]:
    """Open the journal of a flow run; its own listeners, such as the run's log, come first."""
    opened = Journal([*own, *_LISTENERS.get()])
    with variable_scope(_JOURNAL, opened):
        yield opened


@contextmanager
def separate_journal() -> Iterator[Journal]:
    """Record the steps inside the block in a journal of their own, with the same listeners."""
    current = _JOURNAL.get()
    opened = Journal(current.listeners if current else [])
    with variable_scope(_JOURNAL, opened):
        yield opened


def failure_of(error: BaseException) -> Failure | None:
    """The failure behind an error of a flow; None = a bug of moorage, or a signal.

    The time-out of a task becomes a failure that names the step.
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
    """Send the listeners of the current flow a message outside any step."""
    if current := _JOURNAL.get():
        current.tell(text)


def mute_steps() -> AbstractContextManager[None]:
    """Hide the steps inside the block from listeners: over many models there are too many."""
    return variable_scope(_JOURNAL, None)


def within(name: str) -> AbstractContextManager[Note]:
    """A note that reports progress of the current step without being a step of its own."""
    current = _JOURNAL.get()
    return nullcontext(Note(name, current.listeners if current else []))


@contextmanager
def step(name: str) -> Iterator[Note]:
    """Time a step and record it in the journal, also when it fails; redact its failure."""
    current = _JOURNAL.get() or Journal([])
    note = Note(name, current.listeners)
    for listener in current.listeners:
        listener.started(name)
    begin, failed = time.monotonic(), None
    try:
        yield note
    except BaseException as error:
        # Prefect records any error that leaves a task, so secrets are redacted here.
        failed = redact_failure(error) if isinstance(error, Failure) else error
        raise
    finally:
        record = StepRecord(
            name=name, seconds=round(time.monotonic() - begin, 3), summary=redact(note.summary)
        )
        current.steps.append(record)
        for listener in current.listeners:
            listener.ended(record, failed or note.failed)
