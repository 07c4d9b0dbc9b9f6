"""How a flow run below another one ended."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State

from moorage.failures import CAUSES, Cause, ExitCode, Failure
from moorage.history.desired import Applied
from moorage.release import Release


async def outcome_of(model: str, action: str, state: State[Any]) -> Applied:
    """What came of one deploy or retirement."""
    result = await state.aresult(raise_on_failure=False)
    if state.is_completed():
        release = result.id if isinstance(result, Release) else str(result or "")
        outcome = "unchanged" if state.name == "Unchanged" else "done"
        return Applied(
            model=model,
            action=action,
            outcome=outcome,
            message=state.message or "",
            release=release,
        )
    failure = result if isinstance(result, Failure) else None
    cause = failure.cause if failure else Cause.INTERRUPTED
    code = CAUSES[cause].exit_code if failure else ExitCode.INTERNAL
    return Applied(
        model=model,
        action=action,
        outcome="failed",
        message=str(failure or state.message or result),
        cause=cause if failure else "internal",
        exit_code=int(code),
    )
