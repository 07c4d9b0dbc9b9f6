"""Steps as tasks: a Prefect task run inside a flow run, a plain call elsewhere."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from moorage.adapters.prefect.current_run import flow_run_context
from moorage.common.failures import Failure
from tasks.journal import tell

if TYPE_CHECKING:
    from uuid import UUID

    from prefect import Task
    from prefect.client.schemas.objects import State, TaskRun
    from prefect.futures import PrefectFuture
    from prefect.tasks import TaskRunNameCallbackWithParameters

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 3
"""Retries of a task that calls a remote service: after 1, 2 and 4 s, with jitter."""


class FlowTask(Generic[P, R]):
    """An async function that runs as a task of the current flow run.

    Read-only commands call it without a flow run, and then without importing Prefect. Time-out and
    retries are the same.

    Attributes:
        fn: The function itself, without time-out and retries.
    """

    def __init__(
        self,
        fn: Callable[P, Coroutine[Any, Any, R]],
        name: str,
        run_name: str,
        timeout_seconds: float | None,
        *,
        retried: bool,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self._name, self._run_name = name, run_name
        self._timeout_seconds, self._retried = timeout_seconds, retried
        self._signature = inspect.signature(fn)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it as a task run of the current flow run; without a flow run, as a plain call."""
        if (context := flow_run_context()) is None:
            return await self.untracked(*args, **kwargs)
        chain = _chain_of(str(context.flow_run and context.flow_run.id))
        call, before = _Call(self, args, kwargs), tuple(chain.last)
        result = await self._task(call, wait_for=before)
        chain.append(before, call.task_run, result)
        return result

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> PrefectFuture[Any]:
        """Submit it to the flow's task runner, which may run it in another process."""
        return self._task.submit(_Call(self, args, kwargs))

    async def untracked(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it without a task run, with the same time-out and retries."""

        async def attempt() -> R:
            async with asyncio.timeout(self._timeout_seconds):
                return await self.fn(*args, **kwargs)

        return await (_with_retries(self._name)(attempt) if self._retried else attempt())

    @functools.cached_property
    def _task(self) -> Task[[_Call], Coroutine[Any, Any, R]]:
        from prefect import task  # noqa: PLC0415  (imported by whoever runs the flow)
        from prefect.cache_policies import NO_CACHE  # noqa: PLC0415  (as above)
        from prefect.tasks import exponential_backoff  # noqa: PLC0415  (as above)

        retries: dict[str, Any] = {
            "retries": RETRIES,
            "retry_delay_seconds": exponential_backoff(1),
            "retry_jitter_factor": 0.5,
            "retry_condition_fn": _is_retryable,
        }
        return task(
            name=self._name,
            task_run_name=cast("TaskRunNameCallbackWithParameters", _run_name),
            timeout_seconds=self._timeout_seconds,
            cache_policy=NO_CACHE,
            persist_result=False,
            **(retries if self._retried else {}),
        )(_run)

    def run_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The name of a task run with these arguments."""
        return self._run_name.format(**self._signature.bind(*args, **kwargs).arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, since the task runner may be in another process."""
        return _find, (self.fn.__module__, self.fn.__qualname__)


def flow_task(
    name: str, run_name: str, *, timeout_seconds: float | None = None, retried: bool = False
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], FlowTask[P, R]]:
    """Decorator of a step.

    Args:
        name: Name of the task in Prefect.
        run_name: Name of its runs, a format of the function's arguments.
        timeout_seconds: Time-out of one attempt; None = no time-out.
        retried: Whether a retryable failure is tried again, since a remote service may be away.
    """
    return lambda fn: FlowTask(fn, name, run_name, timeout_seconds, retried=retried)


def _with_retries(name: str) -> AsyncRetrying:
    """Retry a plain call as Prefect retries a task with `retried`."""
    return AsyncRetrying(
        stop=stop_after_attempt(RETRIES + 1),
        wait=wait_exponential_jitter(1),
        retry=retry_if_exception(_may_pass),
        before_sleep=lambda call: _tell_retry(name, call.outcome and call.outcome.exception()),
        reraise=True,
    )


class _Call:
    """The arguments of a call as one opaque value, which Prefect passes on unopened.

    Prefect would search separate arguments twice per call, and draw an edge in the run's graph from
    each task to each later one.

    Attributes:
        task_run: The task run of the call; None = not begun, or begun in another process.
    """

    task_run: UUID | None = None

    def __init__(
        self, called: FlowTask[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.called, self.args, self.kwargs = called, args, kwargs


class _Chain:
    """The last tasks of a flow run so far; the next task follows them in the run's graph.

    Attributes:
        last: States of these tasks, without results.
    """

    def __init__(self, flow_run: str) -> None:
        self.flow_run = flow_run
        self.last: list[State[Any]] = []
        self._results: list[object] = []

    def append(self, before: Sequence[State[Any]], task_run: UUID | None, result: object) -> None:
        """Replace the tasks `before` by their follower; tasks that run concurrently stay."""
        # Prefect identifies a result by its address. Were the address reused by the arguments of
        # a later task, Prefect would draw an edge from this task to it.
        self._results.append(result)
        if task_run:
            from prefect.client.schemas.objects import StateDetails  # noqa: PLC0415  (as above)
            from prefect.states import Completed  # noqa: PLC0415  (as above)

            # Prefect needs a result in the states of `wait_for`; nothing reads this one.
            done: State[Any] = Completed(
                data=True, state_details=StateDetails(task_run_id=task_run)
            )
            self.last = [one for one in self.last if one not in before] + [done]


_chain: ContextVar[_Chain | None] = ContextVar("chain", default=None)


def _chain_of(flow_run: str) -> _Chain:
    """The chain of this flow run; each subflow has its own."""
    chain = _chain.get()
    if chain is None or chain.flow_run != flow_run:
        chain = _Chain(flow_run)
        _chain.set(chain)
    return chain


async def _run(call: _Call) -> Any:
    from prefect.context import TaskRunContext  # noqa: PLC0415  (imported by whoever runs the flow)

    if context := TaskRunContext.get():
        call.task_run = context.task_run.id
    return await call.called.fn(*call.args, **call.kwargs)


def _run_name(parameters: dict[str, Any]) -> str:
    call: _Call = parameters["call"]
    return call.called.run_name(call.args, call.kwargs)


def _is_retryable(task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a failed task is tried again. Prefect calls this only while retries are left."""
    if not _may_pass(failure := getattr(state.data, "result", state.data)):
        return False
    _tell_retry(task.name, failure)
    return True


def _tell_retry(name: str, failure: object) -> None:
    tell(f"{name} is tried again: {failure}")


def _may_pass(error: object) -> bool:
    return isinstance(error, Failure) and error.cause.retryable


def _find(module: str, name: str) -> Any:
    return getattr(__import__(module, fromlist=[name]), name)
