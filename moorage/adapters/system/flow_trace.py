"""The trace of a flow run for OpenTelemetry: the run and its steps, sent when it ends."""

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
"""Variables of which one names a collector. Without it nothing is sent, and nothing imported."""

SEND_SECONDS = 15.0
"""Limit for sending a trace, however slowly a collector answers."""

Facts = Callable[[], dict[str, str]]
"""What is known of a run when it ends, by name."""


class Span(NamedTuple):
    """A run, or a step of one. Times are UTC; `failure` is why it failed, empty = it did not."""

    name: str
    begun: datetime
    ended: datetime
    attributes: Mapping[str, str] = {}
    failure: str = ""


class FlowTrace:
    """A listener that keeps the steps of a run, and sends them as a trace when the run ends.

    Args:
        name: Of the flow.
        failure_of: The failure that an error of a flow stands for; None = none of ours.
    """

    def __init__(self, name: str, failure_of: Callable[[BaseException], Failure | None]) -> None:
        self._name, self._failure_of = name, failure_of
        self._steps: list[Span] = []

    def started(self, step: str) -> None:
        """Nothing."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Nothing."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Keep it."""
        now, summary = datetime.now(UTC), {"moorage.summary": record.summary}
        begun = now - timedelta(seconds=record.seconds)
        self._steps.append(Span(record.name, begun, now, summary, self._cause_of(error)))

    def noted(self, text: str) -> None:
        """Nothing."""

    @asynccontextmanager
    async def sent(self, facts: Facts, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """Send the block as a trace when it ends, if the environment names a collector.

        A collector delays the end by `SEND_SECONDS` at most; one that does not answer at all by
        `OTEL_EXPORTER_OTLP_TIMEOUT`, if that is less.

        Args:
            facts: Called at the end, for the attributes of the run.
            tell: Called with why the trace was not sent.
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
        """The cause of a failure, or the type of another error; their texts stay in the record."""
        failure = self._failure_of(error) if error else None
        return str(failure.cause) if failure else type(error).__name__ if error else ""


async def _send_in_time(run: Span, steps: Sequence[Span]) -> str:
    """Send a run and its steps; why they were not sent, empty = they were."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            return await in_thread(_send, run, steps)
    except TimeoutError:
        return NOT_TAKEN


def _send(run: Span, steps: Sequence[Span]) -> str:
    """The same, without a limit of time."""
    try:
        from moorage.adapters.system.open_telemetry import send_trace  # noqa: PLC0415  (an extra)
    except ImportError:
        return "no trace is sent: pip install 'moorage[otel]'"
    return "" if send_trace(run, steps) else NOT_TAKEN
