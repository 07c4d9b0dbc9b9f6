"""What every flow does around its chain: the journal, the run's log, the failure artifact."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed

from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.adapters.prefect.api_errors import server_failure
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.releases.release import Release, ReleaseRow, StepRecord
from moorage.releases.requester import Requester
from tasks.events import emit_transition
from tasks.journal import Journal, journal
from tasks.release import publish_failure
from tasks.requester import parameters_digest, requested


class FlowContext:
    """The journal of one flow run, and the release that it is about once there is one."""

    def __init__(self, opened: Journal, flow_run_id: str, requester: Requester) -> None:
        self.begun = datetime.now(UTC)
        self.journal = opened
        self.flow_run_id = flow_run_id
        self.requester = requester
        self.release = ""

    def failure_of(self, error: Exception) -> Failure | None:
        """The failure that an error stands for; None = a mistake of ours.

        The time-out of a task is a failure that names the step.
        """
        if isinstance(error, Failure):
            return error
        if failure := server_failure(error):
            return failure
        if not isinstance(error, TimeoutError):
            return None
        step = self.journal.steps[-1].name if self.journal.steps else "start"
        return Failure(Cause.STEP_TIMEOUT, f"{step}: {error}")

    def undone(self, label: str, error: BaseException | None) -> None:
        """Tell about an undo that ran."""
        self.journal.tell(f"undone: {label}" if error is None else f"could not {label}: {error}")


@asynccontextmanager
async def flow_context(model: str, requested_by: str = "") -> AsyncIterator[FlowContext]:
    """Keep the journal of a flow run; a failure becomes an artifact before it ends the run.

    Args:
        model: Name of the model that the run is about.
        requested_by: What the run's parameter of that name says.
    """
    with (
        journal(RunLog(get_run_logger())) as opened,
        requested_run(requested_by) as requester,
    ):
        context = FlowContext(opened, str(flow_run.id or ""), requester)
        author = Author(context.flow_run_id, emit_transition, requester.summary)
        try:
            with writing_as(author):
                yield context
        except Exception as error:
            if (failure := context.failure_of(error)) is None:
                raise
            await publish_failure(model, failure, context.release)
            raise failure from None


@contextmanager
def requested_run(requested_by: str = "") -> Iterator[Requester]:
    """Tell the run's log who asked for it, and with which parameters; runs below are asked by them.

    A request that is sent again with its idempotency key gets the run that there is, whatever
    parameters it has: the fingerprint tells whether they are the same.

    Args:
        requested_by: What the run's parameter of that name says.
    """
    with requested(requested_by) as requester:
        known, given = requester.summary, parameters_digest()
        get_run_logger().info("requested by %s; parameters %s", known, given)
        yield requester


def unchanged(old: ReleaseRow, drift: str = "") -> State[Release]:
    """The end of a run that has nothing to do, and what is worth knowing all the same."""
    message = f"unchanged: {old.id} already serves this spec at this revision"
    return Completed(
        name="Unchanged",
        message=f"{message}; {drift}" if drift else message,
        data=old.release,
    )


class RunLog:
    """Writes the journal into the run's log."""

    def __init__(self, logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger

    def started(self, step: str) -> None:
        """Nothing: Prefect tells it itself."""

    def progressed(self, step: str, done: int, total: int) -> None:
        """Nothing: the progress artifact shows it."""

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """One line a step."""
        text = record.summary if error is None else str(error)
        self._logger.info("%s (%s): %s", record.name, human_seconds(record.seconds), text)

    def noted(self, text: str) -> None:
        """One line."""
        self._logger.info("%s", text)
