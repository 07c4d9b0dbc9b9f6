"""Step canary: a share of the replicas has to live and answer before the rest starts."""

from __future__ import annotations

import asyncio
import time

from prefect import task

from moorage.engines.launch import LaunchPlan, Workload
from moorage.engines.registry import ENGINES
from moorage.models.profile import ModelProfile
from moorage.spec import ModelSpec
from tasks.context import in_thread
from tasks.journal import step, tell
from tasks.retries import PLAIN
from tasks.verify import Watch, api_key

POLL_SECONDS = 1.0


@task(name="canary", task_run_name="canary of {plan.release}", **PLAIN)
async def canary(
    spec: ModelSpec, profile: ModelProfile, plan: LaunchPlan, workloads: tuple[Workload, ...]
) -> None:
    """Watch what was started first, for `replace.canary_seconds`.

    Raises:
        Failure: With the cause that the log gives away when one dies, `BAD_ANSWER` when one stops
            answering.
    """
    seconds = spec.replace.canary_seconds
    with step("canary") as note:
        key = await in_thread(api_key, plan)
        watches = [Watch(spec, profile, ENGINES[plan.engine], one, key) for one in workloads]
        tell(f"{len(workloads)} started; watched for {seconds} s before the rest starts")
        rounds, give_up = 0, time.monotonic() + seconds
        while True:
            for watch in watches:
                await watch.must_answer()
            rounds += 1
            left = give_up - time.monotonic()
            if left <= 0:
                break
            await asyncio.sleep(min(POLL_SECONDS, left))
        note.say(f"lived and answered {rounds} times in {seconds} s")
