"""Serve the flows as prefect.yaml describes them; runs are processes on this machine."""

import asyncio
import signal
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import DeploymentFilter
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.runner import Runner
from prefect.utilities.callables import parameter_schema

from flows.deploy_by_name import deploy_by_name
from moorage.adapters.prefect.run_processes import fork_runs
from moorage.adapters.prefect.schedules import (
    creation_of,
    remove_other_schedules,
    scheduled_deployments,
)

POLL_SECONDS = 2.0
"""How often the runner polls the server for runs; Prefect's default of 10 s feels slow."""

APART = ({"reconcile"}, {"deploy", "apply", "redeploy"})
"""Tags of deployments whose runs take no places from the runs of others.

A deploy may wait for a person, or hours for a model to load. Meanwhile reconciling goes on, and a
model can be retired or woken.
"""

FILES_SECONDS = 5.0
"""How often the files that a form offers are updated."""


def serve_all(deployments: list[RunnerDeployment], limit: int, tell: Callable[[str], None]) -> None:
    """Register the deployments and run scheduled and requested runs until SIGINT or SIGTERM.

    Then current runs are cancelled, so that each undoes its effects. `prefect.serve` would kill
    them instead.

    Args:
        limit: Runs at the same time: reconciles, deploys, and all others each have as many places.
        tell: Shows a person from which work pools deployments are taken.
    """
    fork_runs({str(one.entrypoint).rpartition(".")[0] for one in deployments})
    asyncio.run(_serve(deployments, limit, tell))


async def pools_of(names: Sequence[str]) -> list[str]:
    """The work pools that have deployments of these names."""
    named = DeploymentFilter.model_validate({"name": {"any_": names}})
    async with get_client() as client:
        found = await client.read_deployments(deployment_filter=named)
    return sorted({one.work_pool_name for one in found if one.work_pool_name})


def places_of(tags: Collection[str]) -> int:
    """The number of the places that runs of a deployment with these tags take."""
    return next((number for number, kind in enumerate(APART) if kind & {*tags}), len(APART))


async def _serve(
    deployments: list[RunnerDeployment], limit: int, tell: Callable[[str], None]
) -> None:
    for pool in await pools_of([one.name for one in deployments]):
        tell(
            f"The deployments of the work pool {pool} are served here from now on: its workers get"
            " none of their runs, until `prefect deploy --all` gives them back."
        )
    runners = defaultdict[int, Runner](lambda: Runner(limit=limit, query_seconds=POLL_SECONDS))
    follower = None
    kept = {one.name: one.schedules for one in await scheduled_deployments()}
    for deployment in deployments:
        # Registering may remove existing schedules, and those of models are not in the file.
        for one in kept.get(f"{deployment.flow_name}/{deployment.name}", ()):
            deployment.schedules = [*(deployment.schedules or ()), creation_of(one)]
        runner = runners[places_of(deployment.tags or ())]
        identity = await runner.aadd_deployment(deployment)
        await remove_other_schedules(identity, {one.slug for one in deployment.schedules or ()})
        # Otherwise each run, and the runner when it looks for hooks, would load the deployment's
        # entrypoint and pull steps from the server, where callers of the API can change them.
        code: Flow[..., Any] = load_flow_from_entrypoint(
            str(deployment.entrypoint), use_placeholder_flow=False
        )
        runner._deployment_registry.register_flow(identity, code)
        if code.name == deploy_by_name.name:
            follower = asyncio.create_task(_follow_files(identity, code))
    await _run(list(runners.values()))
    if follower:
        follower.cancel()


async def _run(runners: Sequence[Runner]) -> None:
    """Run the runners until a signal comes, or one of them fails."""
    serving = [asyncio.create_task(one.start()) for one in runners]
    await asyncio.sleep(0)  # the runners set their handlers when they start; ours replace them
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    waiting = asyncio.create_task(interrupted.wait())
    await asyncio.wait({*serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for runner, task in zip(runners, serving, strict=True):
        if not runner.started:
            task.cancel()
    await asyncio.gather(*(one.astop() for one in runners if one.started))
    await asyncio.wait(serving)
    for task in serving:
        if not task.cancelled():
            task.result()


async def _follow_files(deployment: UUID, code: Flow[..., Any]) -> None:
    """Keep the files that a deployment's form offers up to date."""
    offered = None  # the schema was made at the flow's import, possibly in another folder
    async with get_client() as client:
        while True:
            if (found := await asyncio.to_thread(parameter_schema, code)) != offered:
                schema = DeploymentUpdate(parameter_openapi_schema=found.model_dump())
                with suppress(httpx.HTTPError):  # the next round tries again
                    await client.update_deployment(deployment, schema)
                    offered = found
            await asyncio.sleep(FILES_SECONDS)
