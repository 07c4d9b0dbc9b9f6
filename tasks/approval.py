"""Ask a person: at the terminal of a command, or by pausing the run on a Prefect server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

from prefect import get_client, get_run_logger
from prefect.exceptions import Pause
from prefect.flow_runs import apause_flow_run
from prefect.input import RunInput
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Running
from pydantic import Field

from moorage.adapters.prefect.api_errors import server_failure
from moorage.common.failures import Cause, Failure
from moorage.operations.redeploy.intent import SERVER_SECONDS, Answer, Question
from tasks.context import in_thread
from tasks.events import ASKED, GRANTED, REFUSED, TIMED_OUT, emit_model_event

POLL_SECONDS = 2
"""How often a paused run looks for its answer; Prefect's own 10 s is long for who waits."""

Asker = Callable[[Question], Answer | None]
"""Asks at a terminal; None = there is nobody."""

_ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)
_GRANTED: ContextVar[frozenset[str]] = ContextVar("granted", default=frozenset())


class Approval(RunInput):
    """The form of the Prefect UI. `approve` has no default: an empty form is no answer."""

    approve: bool = Field(description="Whether it shall be done.")
    note: str = Field("", max_length=2000, description="Why; it is kept in the run's log.")


@contextmanager
def asking(asker: Asker) -> Iterator[None]:
    """Let the flows of this block, where there is no lasting server, ask at a terminal."""
    token = _ASKER.set(asker)
    try:
        yield
    finally:
        _ASKER.reset(token)


@contextmanager
def granted(models: Sequence[str]) -> Iterator[None]:
    """Let the flows of this block deploy these models without another question."""
    token = _GRANTED.set(_GRANTED.get() | frozenset(models))
    try:
        yield
    finally:
        _GRANTED.reset(token)


def is_approved(model: str) -> bool:
    """Whether a person has agreed already in a flow around this one."""
    return model in _GRANTED.get()


async def ask(question: Question) -> None:
    """Wait until a person agrees.

    Raises:
        Failure: `APPROVAL_REFUSED`, `APPROVAL_TIMED_OUT`, or `APPROVAL_IMPOSSIBLE` where there is
            neither a server that others can reach nor a terminal.
    """
    emit_model_event(ASKED, question.models, seconds=question.seconds, why="waits for approval")
    answer = await (
        _on_server(question) if get_current_settings().api.url else _at_terminal(question)
    )
    note = f": {answer.note}" if answer.note else ""
    if not answer.approve:
        emit_model_event(REFUSED, question.models, why=f"refused{note}")
        raise Failure(Cause.APPROVAL_REFUSED, f"{', '.join(question.models)}{note}")
    emit_model_event(GRANTED, question.models, why=f"approved{note}")
    get_run_logger().info("approved%s", note)


async def _on_server(question: Question) -> Answer:
    try:
        return await _paused(question)
    except Exception as error:
        if failure := server_failure(error):
            raise failure from None
        raise


async def _paused(question: Question) -> Answer:
    get_run_logger().info("waits for approval of %s", ", ".join(question.models))
    form = Approval.with_initial_data(description=question.plan)
    try:
        async with asyncio.timeout(question.seconds):
            given = await _given(form, question.seconds + SERVER_SECONDS)
    except TimeoutError:
        why = f"nobody agreed within {question.seconds} s"
        emit_model_event(TIMED_OUT, question.models, seconds=question.seconds, why=why)
        raise Failure(Cause.APPROVAL_TIMED_OUT, f"{', '.join(question.models)}: {why}") from None
    return Answer(approve=given.approve, note=given.note)


async def _given(form: type[Approval], seconds: int) -> Approval:
    while True:
        try:
            return await apause_flow_run(form, timeout=seconds, poll_interval=POLL_SECONDS)
        except Pause:
            # The answer to a pause got lost. Prefect's client has sent it again, was told that the
            # run is paused already, and takes that for the end of this process's part of the run.
            async with get_client() as client:
                await client.set_flow_run_state(UUID(flow_run.id), Running(), force=True)


async def _at_terminal(question: Question) -> Answer:
    asker = _ASKER.get()
    answer = await in_thread(asker, question) if asker else None
    if answer is None:
        raise Failure(Cause.APPROVAL_IMPOSSIBLE, ", ".join(question.models))
    return answer
