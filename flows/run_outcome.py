"""How a flow run below another one ended."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State

from moorage.adapters.prefect.api_errors import server_failure
from moorage.common.failures import CAUSES, ExitCode, Failure
from moorage.operations.history.desired import Applied
from moorage.releases.release import Release


async def outcome_of(model: str, action: str, state: State[Any]) -> Applied:
    """What came of one deploy or retirement."""
    result = await state.aresult(raise_on_failure=False)
    flow_run = str(state.state_details.flow_run_id or "")
    if state.is_completed():
        release = result.id if isinstance(result, Release) else str(result or "")
        outcome = "unchanged" if state.name == "Unchanged" else "done"
        return Applied(
            model=model,
            action=action,
            outcome=outcome,
            message=state.message or "",
            release=release,
            flow_run=flow_run,
        )
    ended = broken(model, action, result)
    told = ended.message if isinstance(result, Failure) else state.message or ended.message
    return ended.model_copy(update={"message": told, "flow_run": flow_run})


def broken(model: str, action: str, error: object) -> Applied:
    """What came of one that raised, or of which no run came to be."""
    if isinstance(error, Exception):
        error = server_failure(error) or error
    cause = error.cause if isinstance(error, Failure) else None
    return Applied(
        model=model,
        action=action,
        outcome="failed",
        message=str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}",
        cause=cause or "internal",
        exit_code=int(CAUSES[cause].exit_code if cause else ExitCode.INTERNAL),
    )
