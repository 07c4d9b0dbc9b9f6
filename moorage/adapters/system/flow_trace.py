"""The OpenTelemetry trace of a flow run: the run and its steps, sent when the run ends."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.releases.release import StepRecord

NOT_TAKEN = "the collector did not take the trace of this run"

COLLECTOR = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables that name a collector. If none is set, nothing is sent and nothing imported."""

SEND_SECONDS = 15.0
"""Limit for sending a trace, however slowly a collector answers."""

Facts = Callable[[], dict[str, str]]
"""Returns the attributes of a run, by name; called when the run ends."""


class Span(NamedTuple):
    """A run or one of its steps. Times are UTC; `failure` is the cause, empty = success."""

    name: str
    begun: datetime
    ended: datetime
    attributes: Mapping[str, str] = {}
    failure: str = ""


class FlowTrace:
    """A listener that records the steps of a run, and sends them as a trace when the run ends.

    Args:
        name: Name of the flow.
        failure_of: Returns the `Failure` in an error of a flow; None = another error.
    """

    def __init__(self, name: str, failure_of: Callable[[BaseException], Failure | None]) -> None:
        self._name, self._failure_of = name, failure_of
        self._steps: list[Span] = []

    def started(self, step: str) -> None:
        """Do nothing."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Do nothing."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Record the step."""
        now, summary = datetime.now(UTC), {"moorage.summary": record.summary}
        begun = now - timedelta(seconds=record.seconds)
        self._steps.append(Span(record.name, begun, now, summary, self._cause_of(error)))

    def noted(self, text: str) -> None:
        """Do nothing."""

    @asynccontextmanager
    async def sent(self, facts: Facts, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """Send the block as a trace when it ends, if the environment names a collector.

        A slow collector delays the end by `SEND_SECONDS` at most; a silent collector by
        `OTEL_EXPORTER_OTLP_TIMEOUT`, if that is less.

        Args:
            facts: Called at the end, for the attributes of the run.
            tell: Called with the reason if the trace was not sent.
        """
        if not any(map(os.environ.get, COLLECTOR)):
            yield
            return
        begun, failure = datetime.now(UTC), ""
        try:
            yield
        except BaseException as error:
            failure = self._cause_of(error)
            raise
        finally:
            run = Span(self._name, begun, datetime.now(UTC), facts(), failure)
            if problem := await _send_in_time(run, self._steps):
                tell(problem)

    def _cause_of(self, error: BaseException | None) -> str:
        """Cause of a failure, or type of another error; the trace contains no error messages."""
        failure = self._failure_of(error) if error else None
        return str(failure.cause) if failure else type(error).__name__ if error else ""


async def _send_in_time(run: Span, steps: Sequence[Span]) -> str:
    """Send a run and its steps within `SEND_SECONDS`; return why it failed, empty = sent."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            return await in_thread(_send, run, steps)
    except TimeoutError:
        return NOT_TAKEN


def _send(run: Span, steps: Sequence[Span]) -> str:
    """As `_send_in_time`, without the time limit."""
    try:
        from moorage.adapters.system.open_telemetry import send_trace  # noqa: PLC0415  (an extra)
    except ImportError:
        return "no trace is sent: `pip install '.[otel]'` in the checkout"
    return "" if send_trace(run, steps) else NOT_TAKEN
