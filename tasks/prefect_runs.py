"""Close flow runs that Prefect wrongly shows as running; remove reconciles that did nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.states import Completed, Crashed

from moorage.adapters.ledger.locks import ASKS, LockHeld
from moorage.adapters.prefect.api_errors import server_failure
from moorage.adapters.system.threads import in_thread
from moorage.operations.reconcile.actions import ActionKind, ActionOutcome
from moorage.releases.states import UNFINISHED, ReleaseState
from moorage.spec.lifecycle import MOST_APPROVAL_SECONDS
from tasks.context import ledger
from tasks.journal import tell

KILLED = "its process is gone; what it had begun was put right by reconciling"
GONE = "its process is gone; it waited for approval, and had begun nothing"
UNREPORTED = "it ended while Prefect's API was away"

LEFT_BEHIND = {ActionKind.UNDO, ActionKind.FINISH, ActionKind.BRING_BACK}
"""Actions that finish or undo the work of a killed flow run."""

LEADING = ["deploy-model", "deploy-by-name", "deploy-quick", "retire-model", "rollback-model"]
"""Flows that change the state of releases."""

DID_NOTHING = ["Unchanged", "Skipped"]
"""Final states of runs that did nothing."""

AT_ONCE = 100
"""Most runs to read in one reconcile; the next reconcile continues."""


async def close_killed_runs(outcomes: Sequence[ActionOutcome]) -> None:
    """Set killed flow runs to Crashed in Prefect, which would show them as running forever.

    Leaves alone runs that have ended and runs of another server.
    """
    runs = await in_thread(_killed_runs, outcomes)
    await _end_runs({one: Crashed(message=KILLED) for one in runs})


async def close_unreported_runs(since: datetime) -> None:
    """Set the final state of runs whose process could not, unless the process may still work."""
    await _end_runs(await in_thread(final_states, await _shown_as_running(since), since))


async def close_abandoned_questions() -> None:
    """Set runs to Crashed that were killed while they waited for approval.

    A run that this server does not know may be another's. Its lock is freed once no run waits any
    longer.
    """
    await in_thread(ledger().locks.drop_expired, ASKS, MOST_APPROVAL_SECONDS)
    for lock in await in_thread(ledger().locks.abandoned, ASKS):
        run = lock.removeprefix(ASKS)
        if await _end_runs({run: Crashed(message=GONE)}):
            await in_thread(_free, lock)


def _free(lock: str) -> None:
    own = ledger().locks
    with suppress(LockHeld), own.holding(lock, wait_seconds=0):
        pass


async def remove_quiet_runs(before: datetime) -> None:
    """Remove scheduled reconciles that did nothing and ended, or were to begin, before `before`.

    One run a minute would hide all other runs, and what nobody could start in time would queue up.
    Runs that a person or an event began stay.
    """
    for names, time in ((DID_NOTHING, "end_time"), (["Late"], "next_scheduled_start_time")):
        past = {"state": {"name": {"any_": names}}, time: {"before_": before}}
        with _refusal_ignored():  # then the next reconcile does it
            async with get_client() as client:
                scheduled = {**past, "tags": {"all_": ["auto-scheduled"]}}
                for run in await _read_runs(client, ["reconcile-fleet"], scheduled):
                    with _refusal_ignored():
                        await client.delete_flow_run(run.id)


def _killed_runs(outcomes: Sequence[ActionOutcome]) -> list[str]:
    """Killed flow runs: those that began, or last changed, the releases that were cleaned up."""
    runs = []
    for one in outcomes:
        if one.done and one.action.kind in LEFT_BEHIND:
            runs.append(ledger().releases.get(one.action.release).flow_run_id)
            log = ledger().releases.transitions(one.action.release)
            runs += [made.flow_run_id for made in log if made.after == one.action.state]
    return runs


def final_states(flow_runs: Sequence[str], since: datetime) -> dict[str, State]:
    """Final states of ended runs: their models' locks are free, their releases unchanged since."""
    ends: dict[str, State] = {}
    for run in flow_runs:
        rows = ledger().releases.moved_by(run)
        late = all(row.updated_at < since and row.state not in UNFINISHED for row in rows)
        if rows and late and not ledger().locks.holders([row.model for row in rows]):
            if rows[-1].state == ReleaseState.ERROR:
                ends[run] = Crashed(message=UNREPORTED)
            else:
                ends[run] = Completed(message=f"{UNREPORTED}; its release is in the ledger")
    return ends


async def _end_runs(ends: Mapping[str, State]) -> bool:
    """End these runs unless they have ended; returns whether the server knows all and took it."""
    taken = 0
    with _refusal_ignored():  # then the next reconcile does it
        async with get_client() as client:
            for identity in sorted(filter(None, ends)):
                with _refusal_ignored(), suppress(ValueError):
                    run = await client.read_flow_run(UUID(identity))
                    if run.state is None or run.state.is_final():
                        taken += 1
                        continue
                    await client.set_flow_run_state(run.id, ends[identity], force=True)
                    taken += 1
                    tell(f"flow run {run.name} is {ends[identity].name}: {ends[identity].message}")
    return taken == len(ends)


async def _shown_as_running(since: datetime) -> list[str]:
    """Running runs of `LEADING` flows that began before `since`; empty where Prefect is away."""
    running = {"state": {"type": {"any_": [StateType.RUNNING]}}, "start_time": {"before_": since}}
    with _refusal_ignored():
        async with get_client() as client:
            return [str(run.id) for run in await _read_runs(client, LEADING, running)]
    return []


async def _read_runs(
    client: PrefectClient, flows: list[str], runs: Mapping[str, Any]
) -> list[FlowRun]:
    return await client.read_flow_runs(
        flow_filter=FlowFilter.model_validate({"name": {"any_": flows}}),
        flow_run_filter=FlowRunFilter.model_validate(runs),
        limit=AT_ONCE,
    )


@contextmanager
def _refusal_ignored() -> Iterator[None]:
    """Ignore errors of Prefect's API: no answer, or an unexpected one."""
    try:
        yield
    except Exception as error:
        if server_failure(error) is None:
            raise
