"""Subflows of a run of many models: a failure of one does not end the others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from prefect.client.schemas.objects import State

from flows.deploy_model import deploy_model
from flows.flow_context import with_result
from flows.retire_model import retire_model
from moorage.adapters.prefect.api_errors import is_server_trouble, server_failure
from moorage.adapters.system.threads import in_thread, was_interrupted
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.operations.history.desired import Applied
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import SERVING
from tasks.context import ledger

DEPLOY = deploy_model.with_options(validate_parameters=False)
RETIRE = retire_model.with_options(validate_parameters=False)
"""As runs below another one, whose parameters were validated with it: Prefect would make a model
of all parameters anew for each call, which takes longer than any other part of a call."""

Begin = Callable[[], Awaitable[State[Any]]]

PAUSES_SECONDS: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
"""How long to wait before a run that did not come to be is begun again, and so how often.

Before each of them Prefect's client has retried for about a minute by itself.
"""


async def deploy_subflow(model: str, begin: Begin) -> Applied:
    """Deploy a model in a run below this one; whatever goes wrong is this model's own failure.

    Where Prefect's server does not answer, the run is begun again, unless it has begun a release:
    then the ledger tells what became of that, whether or not the server knows.

    Args:
        model: Its name.
        begin: Begins the run, and returns its final state.
    """
    since = datetime.now(UTC)
    return await _run_subflow(model, "deploy", begin, lambda: _newest_release(model, since))


async def retire_subflow(model: str, begin: Begin) -> Applied:
    """Retire a model in a run below this one. Idempotent, so always retried."""
    return await _run_subflow(model, "retire", begin, lambda: None)


async def _run_subflow(
    model: str, action: str, begin: Begin, made: Callable[[], ReleaseRow | None]
) -> Applied:
    pauses = iter(PAUSES_SECONDS)
    while True:
        try:
            state = with_result(await begin())
            error = await state.aresult(raise_on_failure=False)
        except Exception as raised:
            if was_interrupted(raised):
                raise
            state, error = None, raised
        if not (isinstance(error, Exception) and is_server_trouble(error)):
            break
        if row := await in_thread(made):
            return _from_ledger(row, action, error)
        if (pause := next(pauses, None)) is None:
            break
        # Not all of them at the same moment.
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
    return await outcome_of(model, action, state) if state else failed_outcome(model, action, error)


def _newest_release(model: str, since: datetime) -> ReleaseRow | None:
    """The release of a model that was begun since then."""
    newest = next(iter(ledger().releases.of_model(model)), None)
    return newest if newest and newest.created_at >= since else None


def _from_ledger(row: ReleaseRow, action: str, error: Exception) -> Applied:
    """What became of a run whose end Prefect's server did not take, as the ledger has it."""
    lost = f"Prefect's server did not take the end of its run: {error}"
    common = {"model": row.model, "action": action, "release": row.id}
    if row.state in SERVING:
        return Applied(**common, outcome="done", message=f"{row.id} serves {row.model}; {lost}")
    return Applied(
        **common,
        outcome="failed",
        message=f"{row.id} is {row.state} ({row.cause}); {lost}",
        cause=Cause.SERVER_UNAVAILABLE,
        exit_code=int(Cause.SERVER_UNAVAILABLE.exit_code),
    )


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
    ended = failed_outcome(model, action, result)
    message = ended.message if isinstance(result, Failure) else state.message or ended.message
    return ended.model_copy(update={"message": message, "flow_run": flow_run})


def failed_outcome(model: str, action: str, error: object) -> Applied:
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
        exit_code=int(cause.exit_code if cause else ExitCode.INTERNAL),
    )
