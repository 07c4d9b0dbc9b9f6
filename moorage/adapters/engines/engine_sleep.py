"""Puts engines to sleep and wakes them over HTTP."""

import asyncio
from collections.abc import Sequence

from moorage.adapters.engines.engine_http import NoAnswer, Question, ask_engine
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError
from moorage.engines.sleep import EngineSleep, SleepStep
from moorage.engines.workload import Workload

STATE_SECONDS = 5.0
MOST_BYTES = 64 * 1024


async def put_engines_to_sleep(
    workloads: Sequence[Workload], how: EngineSleep, seconds: float
) -> None:
    """Put engines to sleep, all at the same time, each within `seconds`.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE` when an engine refuses or does not report that it sleeps.
    """
    await asyncio.gather(*(_send(one, how.sleep, seconds) for one in workloads))
    if not await are_asleep(workloads, how):
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "an engine does not say that it sleeps")


async def wake_engines(workloads: Sequence[Workload], how: EngineSleep, seconds: float) -> None:
    """Wake engines, all at the same time, each within `seconds`.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE` when an engine refuses.
    """
    await asyncio.gather(*(_send(one, how.wake, seconds) for one in workloads))


async def are_asleep(workloads: Sequence[Workload], how: EngineSleep) -> bool:
    """Whether all engines answer and report that they sleep."""
    return all(await asyncio.gather(*(_is_asleep(one, how) for one in workloads)))


async def _send(workload: Workload, steps: Sequence[SleepStep], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            for step in steps:
                url = workload.endpoint + step.path
                question = Question(url, "POST", step.body, parameters=dict(step.parameters))
                answer = await ask_engine(question, seconds, MOST_BYTES)
                if answer.status != 200:
                    detail = f"{workload.name} answers {step.path} with {answer.status}"
                    raise Failure(Cause.RUNTIME_UNAVAILABLE, detail)
    except (NoAnswer, TimeoutError) as error:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{workload.name}: {error}") from error


async def _is_asleep(workload: Workload, how: EngineSleep) -> bool:
    try:
        question = Question(workload.endpoint + how.state)
        found = (await ask_engine(question, STATE_SECONDS, MOST_BYTES)).json()
    except (NoAnswer, JsonError):
        return False
    return isinstance(found, dict) and found.get("is_sleeping") is True
