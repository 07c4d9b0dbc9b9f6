"""Map a task over hosts: a task run for each, here or in a Ray cluster, a few at once."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from moorage.adapters.prefect.current_run import flow_run_context
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure, combine
from moorage.inventory.access import parse_access
from tasks.flow_task import FlowTask
from tasks.journal import step

R = TypeVar("R")

MOST_TASK_RUNS = 64
"""Most hosts with a task run each: more are unreadable, and each costs about 10 ms of CPU time."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of a task, for one host.

    Attributes:
        address: Address of the host's daemon. Calls for this machine always run in this process.
        step: Step of the journal that the task writes; empty = none.
    """

    host: str
    address: str
    arguments: Mapping[str, Any]
    step: str = ""


async def map_hosts(work: FlowTask[..., R], calls: Sequence[HostCall], at_once: int) -> list[R]:
    """Run a task for several hosts, `at_once` at the same time; returns the results in order.

    Each call is a task run, in this process or in the flow's task runner. In this process, a single
    call, or more than `MOST_TASK_RUNS`, get no task runs of their own.
    After a failure no other call begins. Calls that have begun run to their end: downloads stay
    useful, and an undo must not run before its effect has ended. A task that runs in another
    process must bring its own retries. With several hosts, one failure has the details of all.
    """
    gate = asyncio.Semaphore(at_once)
    tracked = 1 < len(calls) <= MOST_TASK_RUNS
    failures: list[tuple[str, Failure]] = []
    errors: list[Exception] = []
    not_begun: list[str] = []

    async def run(call: HostCall) -> R | None:
        async with gate:
            if failures or errors:
                not_begun.append(call.host)
                return None
            try:
                return await _call(work, call, tracked=tracked)
            except Failure as failure:
                failures.append((call.host, failure))
            except Exception as error:
                errors.append(error)
            return None

    results = await asyncio.gather(*(run(call) for call in calls))
    if errors:  # a time-out or a bug: raised before any failure
        raise errors[0]
    if failures:
        one_host = len({call.host for call in calls}) == 1
        raise failures[0][1] if one_host else combine(failures, not_begun)
    return [result for result in results if result is not None]


async def gather_all(*jobs: Awaitable[Any]) -> list[Any]:
    """Wait until all jobs have ended, also those that fail; then raise the first error."""
    ended = await asyncio.gather(*jobs, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return ended


async def _call(work: FlowTask[..., R], call: HostCall, *, tracked: bool) -> R:
    if not (_runs_tasks_elsewhere() and parse_access(call.address).is_remote):
        return await (work if tracked else work.untracked)(**call.arguments)
    if not call.step:
        return await _submit(work, call)
    # The other process has no journal; the task's result becomes the summary of the step.
    with step(call.step) as note:
        result = await _submit(work, call)
        note.say(str(result))
        return result


def _runs_tasks_elsewhere() -> bool:
    context = flow_run_context()
    if context is None:
        return False
    from moorage.adapters.prefect.task_runner import is_elsewhere  # noqa: PLC0415  (imports Prefect)

    return is_elsewhere(context.task_runner)


async def _submit(work: FlowTask[..., R], call: HostCall) -> R:
    from moorage.adapters.prefect.task_runner import without_processors  # noqa: PLC0415  (as above)

    with without_processors():
        future = work.submit(**call.arguments)
    result: R = await in_thread(future.result)
    return result
