"""Flow runs whose process is gone, as Prefect shows them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.states import Crashed

from tasks.journal import tell

MESSAGE = "its process is gone; what it had begun was put right by reconciling"


async def close_runs(flow_runs: Iterable[str]) -> None:
    """Tell Prefect of flow runs that were killed: it shows them as running for ever.

    Runs that have ended, and those of another server, are left alone.

    Args:
        flow_runs: Ids.
    """
    async with get_client() as client:
        for identity in sorted(set(filter(None, flow_runs))):
            with suppress(ObjectNotFound, PrefectHTTPStatusError, ValueError):
                run = await client.read_flow_run(UUID(identity))
                if run.state is None or run.state.is_final():
                    continue
                await client.set_flow_run_state(run.id, Crashed(message=MESSAGE), force=True)
                tell(f"flow run {run.name} had crashed")
