"""Subflows of a run over many models; the failure of one does not end the others."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from copy import copy
from datetime import UTC, datetime
from functools import partial
from typing import Any, ParamSpec, TypeVar

from prefect import Flow
from prefect.client.schemas.objects import State

from flows.deploy_model import deploy_model
from flows.flow_context import with_result
from flows.retire_model import retire_model
from moorage.adapters.prefect.api_errors import is_server_trouble, server_failure
from moorage.adapters.prefect.termination import is_terminating
from moorage.adapters.system.threads import in_thread, was_interrupted
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.history.desired import Applied
from moorage.operations.reconcile.actions import WAITS
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING
from moorage.spec import ModelSpec
from tasks.context import ledger
from tasks.policy import file_set_scope

P = ParamSpec("P")
R = TypeVar("R")


def _as_subflow(flow: Flow[P, R]) -> Flow[P, R]:
    """A copy of a flow for calls in another flow, which skips validation and its own storage.

    The parent has validated the parameters; a second validation would take longer than any other
    part of the call. Without its own storage, a subflow uses the parent's and needs no client.
    `with_options` would make the parameter schema again, which takes 0.2 s.
    """
    part = copy(flow)
    part.should_validate_parameters, part.result_storage = False, None
    return part


DEPLOY, RETIRE = _as_subflow(deploy_model), _as_subflow(retire_model)

Begin = Callable[[], Awaitable[State[Any]]]

PAUSES_SECONDS: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
"""Pauses between attempts to begin a run; in each, Prefect's client retries for about a minute."""


def deployment(spec: ModelSpec, fleet: Fleet, file_set: str, *, force: bool = False) -> Begin:
    """A function that begins the deploy of a model; empty `file_set` = of no set of files."""

    async def begin() -> State[Any]:
        with file_set_scope(file_set):
            return await DEPLOY(spec, fleet, force, return_state=True)

    return begin


async def deploy_subflow(
    spec: ModelSpec, fleet: Fleet, file_set: str, *, force: bool = False
) -> Applied:
    """Deploy a model in a subflow; an error becomes the model's outcome and is not raised.

    If Prefect's server does not answer, the run is begun again. Once a release has begun, its
    outcome is read from the ledger instead.
    """
    model, since = spec.name, datetime.now(UTC)

    def newest_release() -> ReleaseRow | None:
        newest = ledger().releases.newest(model)
        return newest if newest and newest.created_at >= since else None

    begin = deployment(spec, fleet, file_set, force=force)
    return await _run_subflow(model, "deploy", begin, newest_release)


async def retire_subflow(model: str) -> Applied:
    """Retire a model in a subflow. Idempotent, so always retried."""
    begin = partial(RETIRE, model, return_state=True)
    return await _run_subflow(model, "retire", begin, lambda: None)


async def exit_code_of_run(state: State[Any]) -> int:
    """The exit code of the class of a failed run's failure; 0 = it only has to wait."""
    try:
        result = await state.aresult(raise_on_failure=False)
    except Exception as error:  # Prefect has lost it
        result = error
    failed = _failed("", "", result)
    return 0 if failed.cause in WAITS else failed.exit_code


async def _run_subflow(
    model: str, action: str, begin: Begin, made: Callable[[], ReleaseRow | None]
) -> Applied:
    """Run a subflow; its outcome is from its final state or, if that was lost, from the ledger."""
    for pause in (*PAUSES_SECONDS, None):
        state: State[Any] | None = None
        try:
            state = with_result(await begin())
            result = await state.aresult(raise_on_failure=False)
        except Exception as raised:
            if was_interrupted(raised) or is_terminating():
                raise
            result = raised
        if not (isinstance(result, Exception) and is_server_trouble(result)):
            break
        if row := await in_thread(made):
            return _from_ledger(row, action, result)
        if pause:  # with jitter, so that the models do not retry in step
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
    return _outcome(model, action, state, result)


def _from_ledger(row: ReleaseRow, action: str, error: Exception) -> Applied:
    """The ledger's outcome of a run whose final state Prefect's server did not take."""
    lost = f"Prefect's server did not take the end of its run: {error}"
    model, release = row.model, row.id
    if row.state in SERVING:
        text = f"{release} serves {model}; {lost}"
        return Applied(model=model, action=action, outcome="done", release=release, message=text)
    text = f"{release} is {row.state} ({row.cause}); {lost}"
    failed = _failed(model, action, Failure(Cause.SERVER_UNAVAILABLE, text))
    return failed.model_copy(update={"message": text, "release": release})


def _outcome(model: str, action: str, state: State[Any] | None, result: object) -> Applied:
    """The outcome of a deploy or retirement; `state` is None if no run was begun."""
    if state is None:
        return _failed(model, action, result)
    flow_run = str(state.state_details.flow_run_id or "")
    if state.is_completed():
        return Applied(
            model=model,
            action=action,
            outcome="unchanged" if state.name == "Unchanged" else "done",
            message=state.message or "",
            release=result.id if isinstance(result, Release) else str(result or ""),
            flow_run=flow_run,
        )
    failed = _failed(model, action, result)
    message = failed.message if isinstance(result, Failure) else state.message or failed.message
    return failed.model_copy(update={"message": message, "flow_run": flow_run})


def _failed(model: str, action: str, error: object) -> Applied:
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
