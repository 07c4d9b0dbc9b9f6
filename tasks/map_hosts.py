"""Map a task over hosts: a task run for each, here or in a Ray cluster, so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from prefect import Task
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture

from moorage.adapters.prefect.task_runner import is_elsewhere, light
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
    """Do the same for several hosts, side by side; a slow one holds up nobody but the end.

    Each call is a task run of its own, in this process or where the flow's task runner runs tasks.
    Once one has failed no other is begun; those that were begun go on to their end, for what they
    bring stays useful, and what an undo is about to remove must have come to be.

    Args:
        work: The task. Of a flow that runs it elsewhere it must bring its own retries.
        calls: What for.
        at_once: How many may run at the same time.

    Returns:
        What each call returned, in order.

    Raises:
        Failure: Of one host as it is; of several `joint` into one.
    """
    gate, failed, not_begun = asyncio.Semaphore(at_once), _Failed(), list[str]()

    async def one(call: HostCall) -> R | None:
        async with gate:
            if failed.any:
                not_begun.append(call.host)
                return None
            try:
                return await _called(work, call)
            except Failure as failure:
                failed.failures.append((call.host, failure))
            except Exception as error:
                failed.others.append(error)
            return None

    done = await asyncio.gather(*(one(call) for call in calls))
    if failed.others:  # a time-out, or a mistake of ours: nothing may hide it
        raise failed.others[0]
    if failed.failures:
        alone = len({call.host for call in calls}) == 1
        raise failed.failures[0][1] if alone else combine(failed.failures, not_begun)
    return [result for result in done if result is not None]


async def gather_all(*jobs: Awaitable[Any]) -> list[Any]:
    """Wait until all have ended, whatever becomes of one; then the first error counts."""
    ended = await asyncio.gather(*jobs, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return ended


class _Failed:
    """What went wrong so far."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, Failure]] = []
        self.others: list[Exception] = []

    @property
    def any(self) -> bool:
        """Whether anything did."""
        return bool(self.failures or self.others)


async def _called(work: Task[..., Coroutine[Any, Any, R]], call: HostCall) -> R:
    flow_run = FlowRunContext.get()
    if flow_run is None:  # outside a flow there is no task run to be seen
        return await work.fn(**call.arguments)
    if not is_elsewhere(flow_run.task_runner) or not parse_access(call.address).is_remote:
        return cast(R, await work(**call.arguments))
    if not call.step:
        return await _submitted(work, call)
    # The journal does not reach there; what the task returns is what it would have said.
    with step(call.step) as note:
        result = await _submitted(work, call)
        note.say(str(result))
        return result


async def _submitted(work: Task[..., Coroutine[Any, Any, R]], call: HostCall) -> R:
    with light():
        future: PrefectFuture[R] = work.submit(**call.arguments)
    return await in_thread(future.result)
