"""Map a task over hosts: a task run for each, here or in a Ray cluster, so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from prefect import Task
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture

from moorage.adapters.prefect.task_runner import is_elsewhere, without_processors
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure, combine
from moorage.inventory.access import parse_access
from tasks.journal import step

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of a task, for one host.

    Attributes:
        host: Its name, for messages.
        address: How its daemon is reached. What is this machine is never done elsewhere.
        arguments: Of the task; kept small, for Prefect walks through them.
        step: Step of the journal that the task writes, if it writes one.
    """

    host: str
    address: str
    arguments: Mapping[str, Any]
    step: str = ""


async def map_hosts(
    work: Task[..., Coroutine[Any, Any, R]], calls: Sequence[HostCall], at_once: int
) -> list[R]:
    """Run a task for several hosts at the same time; returns their results in order.

    Each call is a task run of its own, in this process or where the flow's task runner runs tasks.
    After a failure no other call is begun. Those that were begun go on to their end: what they
    fetch stays useful, and an undo must not run before its effect has ended.

    Args:
        work: The task. Of a flow that runs it elsewhere it must bring its own retries.
        calls: One for each host.
        at_once: How many may run at the same time.

    Raises:
        Failure: Of one host as it is; of several hosts one failure with the details of all.
    """
    gate, outcomes = asyncio.Semaphore(at_once), _Outcomes()

    async def run(call: HostCall) -> R | None:
        async with gate:
            return await outcomes.collect(call, _call(work, call))

    results = await asyncio.gather(*(run(call) for call in calls))
    outcomes.raise_failure(alone=len({call.host for call in calls}) == 1)
    return [result for result in results if result is not None]


async def gather_all(*jobs: Awaitable[Any]) -> list[Any]:
    """Wait until all have ended, whatever becomes of one; then the first error counts."""
    ended = await asyncio.gather(*jobs, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return ended


class _Outcomes:
    """What failed so far, and what was not begun because of it."""

    def __init__(self) -> None:
        self._failures: list[tuple[str, Failure]] = []
        self._errors: list[Exception] = []
        self._not_begun: list[str] = []

    async def collect(self, call: HostCall, result: Coroutine[Any, Any, R]) -> R | None:
        """Await a call and note its failure; after a failure it is not begun."""
        if self._failures or self._errors:
            result.close()
            self._not_begun.append(call.host)
            return None
        try:
            return await result
        except Failure as failure:
            self._failures.append((call.host, failure))
        except Exception as error:
            self._errors.append(error)
        return None

    def raise_failure(self, *, alone: bool) -> None:
        """Raise what failed; `alone` means that all calls were for one host."""
        if self._errors:  # a time-out, or a mistake of ours: nothing may hide it
            raise self._errors[0]
        if self._failures:
            raise self._failures[0][1] if alone else combine(self._failures, self._not_begun)


async def _call(work: Task[..., Coroutine[Any, Any, R]], call: HostCall) -> R:
    flow_run = FlowRunContext.get()
    if flow_run is None:  # outside a flow there is no task run to be seen
        return await work.fn(**call.arguments)
    if not is_elsewhere(flow_run.task_runner) or not parse_access(call.address).is_remote:
        return cast(R, await work(**call.arguments))
    if not call.step:
        return await _submit(work, call)
    # The journal does not reach there; the result of the task is the line of its step.
    with step(call.step) as note:
        result = await _submit(work, call)
        note.say(str(result))
        return result


async def _submit(work: Task[..., Coroutine[Any, Any, R]], call: HostCall) -> R:
    with without_processors():
        future: PrefectFuture[R] = work.submit(**call.arguments)
    return await in_thread(future.result)
