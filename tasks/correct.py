"""Step correct: make room for the second try of a part of a release."""

from __future__ import annotations

from prefect import task

from moorage.engines.launch import LaunchPlan, planned_workload
from moorage.engines.recovery import Correction
from tasks.context import in_full
from tasks.journal import step, tell
from tasks.launch import ABORT_SECONDS, stop
from tasks.retries import PLAIN


@task(name="correct", task_run_name="correct {part.release}", **PLAIN)
async def correct(part: LaunchPlan, correction: Correction) -> None:
    """Stop and remove what the first try of a part has started; its names are used again.

    Args:
        part: What was started.
        correction: What the second try will change.
    """
    with step("correct") as note:
        tell(f"the first try failed ({correction.cause}); trying again with {correction.summary}")
        for spec in part.containers:
            await in_full(stop, planned_workload(spec), ABORT_SECONDS)
        note.say(correction.summary)
