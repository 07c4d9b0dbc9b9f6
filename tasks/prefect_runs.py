"""Close flow runs that have ended, but that Prefect still shows as running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.states import Completed, Crashed

from moorage.adapters.prefect.api_errors import server_failure
from tasks.journal import tell

GONE = "its process is gone; what it had begun was put right by reconciling"

LEADING = ["deploy-model", "retire-model", "rollback-model"]
"""Flows that move releases."""

AT_ONCE = 100
"""How many runs are asked for; more of them are closed a look later."""


async def close_runs(flow_runs: Iterable[str]) -> None:
    """Tell Prefect of flow runs that were killed: it shows them as running for ever.

    Runs that have ended, and those of another server, are left alone.

    Args:
        flow_runs: Ids.
    """
    await end_runs({one: Crashed(message=GONE) for one in flow_runs})


async def end_runs(ends: Mapping[str, State]) -> None:
    """Tell Prefect how runs have ended that it shows as running; what it does not take is left.

    Args:
        ends: The final state of each, by id.
    """
    with _refusals_left():  # then the next look does it
        async with get_client() as client:
            for identity in sorted(filter(None, ends)):
                with _refusals_left(), suppress(ValueError):
                    run = await client.read_flow_run(UUID(identity))
                    if run.state is None or run.state.is_final():
                        continue
                    await client.set_flow_run_state(run.id, ends[identity], force=True)
                    tell(f"flow run {run.name} is {ends[identity].name}: {ends[identity].message}")


async def shown_as_running(since: datetime) -> list[str]:
    """Runs of flows that move releases, which Prefect shows as running since before a moment.

    One whose process has lost Prefect's API could not tell it how it ended.

    Args:
        since: The moment.

    Returns:
        Ids; none when Prefect does not answer.
    """
    begun = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
        start_time=FlowRunFilterStartTime(before_=since),
    )
    ours = FlowFilter(name=FlowFilterName(any_=LEADING))
    with _refusals_left():
        async with get_client() as client:
            runs = await client.read_flow_runs(
                flow_filter=ours, flow_run_filter=begun, limit=AT_ONCE
            )
            return [str(run.id) for run in runs]
    return []


@contextmanager
def _refusals_left() -> Iterator[None]:
    """Leave it at that where Prefect's API does not answer, or not as its client expects."""
    try:
        yield
    except Exception as error:
        if server_failure(error) is None:
            raise


def unreported(good: bool) -> State:
    """The final state of a run whose process could not tell Prefect how it ended."""
    lost = "it ended while Prefect's API was away"
    return (
        Completed(message=f"{lost}; its release is in the ledger")
        if good
        else Crashed(message=lost)
    )
