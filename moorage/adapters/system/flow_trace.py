"""The trace of a flow run for OpenTelemetry: the run and its steps, sent when it ends."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
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


class EndedStep(NamedTuple):
    """A step, when it ended (UTC), and its failure; empty = it did not fail."""

    record: StepRecord
    ended: datetime
    failure: str


class FlowTrace:
    """A listener that keeps the steps of a run, and sends them as a trace when the run ends.

    Args:
        name: Of the flow.
        failure_of: The failure that an error of a flow stands for; None = none of ours.
    """

    def __init__(self, name: str, failure_of: Callable[[BaseException], Failure | None]) -> None:
        self._name, self._failure_of = name, failure_of
        self._steps: list[EndedStep] = []

    def started(self, step: str) -> None:
        """Nothing."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Nothing."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Keep it."""
        self._steps.append(EndedStep(record, datetime.now(UTC), self._cause_of(error)))

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
            now = datetime.now(UTC)
            whole = StepRecord(name=self._name, seconds=(now - begun).total_seconds())
            run = EndedStep(whole, now, failure)
            if problem := await _send_in_time(run, facts(), self._steps):
                tell(problem)

    def _cause_of(self, error: BaseException | None) -> str:
        """The cause of a failure, or the type of another error; their texts stay in the record."""
        failure = self._failure_of(error) if error else None
        return str(failure.cause) if failure else type(error).__name__ if error else ""


async def _send_in_time(run: EndedStep, facts: dict[str, str], steps: Sequence[EndedStep]) -> str:
    """Send a run and its steps; why they were not sent, empty = they were."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            return await in_thread(_send, run, facts, steps)
    except TimeoutError:
        return NOT_TAKEN


def _send(run: EndedStep, facts: dict[str, str], steps: Sequence[EndedStep]) -> str:
    """The same, without a limit of time."""
    try:
        from moorage.adapters.system.open_telemetry import Span, send_trace  # noqa: PLC0415  (an extra)
    except ImportError:
        return "no trace is sent: pip install 'moorage[otel]'"

    def span(one: EndedStep, attributes: dict[str, str]) -> Span:
        begun = one.ended - timedelta(seconds=one.record.seconds)
        return Span(one.record.name, begun, one.ended, attributes, one.failure)

    parts = [span(one, {"moorage.summary": one.record.summary}) for one in steps]
    taken = send_trace(span(run, facts), parts)
    return "" if taken else NOT_TAKEN
