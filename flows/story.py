"""What every flow does around its chain: the journal, the run's log, the failure artifact."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed

from moorage.adapters.ledger.author import Author, writing_as
from moorage.failures import Cause, Failure
from moorage.release import Release, ReleaseRow, StepRecord
from moorage.units import human_seconds
from tasks.announce import announce
from tasks.journal import Journal, journal
from tasks.release import publish_failure


class Story:
    """The journal of one flow run, and the release that it is about once there is one."""

    def __init__(self, opened: Journal, flow_run_id: str) -> None:
        self.begun = datetime.now(UTC)
        self.journal = opened
        self.flow_run_id = flow_run_id
        self.release = ""

    def failure_of(self, error: Failure | TimeoutError) -> Failure:
        """A failure as it is; the time-out of a task as a failure that names the step."""
        if isinstance(error, Failure):
            return error
        step = self.journal.steps[-1].name if self.journal.steps else "start"
        return Failure(Cause.STEP_TIMEOUT, f"{step}: {error}")

    def undone(self, label: str, error: BaseException | None) -> None:
        """Tell about an undo that ran."""
        self.journal.tell(f"undone: {label}" if error is None else f"could not {label}: {error}")


@asynccontextmanager
async def told(model: str) -> AsyncIterator[Story]:
    """Keep the journal of a flow run; a failure becomes an artifact before it ends the run."""
    with journal(RunLog(get_run_logger())) as opened:
        story = Story(opened, str(flow_run.id or ""))
        try:
            with writing_as(Author(story.flow_run_id, announce)):
                yield story
        except (Failure, TimeoutError) as error:
            failure = story.failure_of(error)
            await publish_failure(model, failure, story.release)
            raise failure from None


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
