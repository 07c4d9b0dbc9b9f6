"""Step facts: what each engine says about itself. It fails no deployment, whatever happens."""

from __future__ import annotations

from typing import Any

from prefect import task

from moorage.adapters.engines.probe import ask
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.memory.calibration import Measurement
from moorage.placement.placement import Role
from moorage.readiness.engine_facts import MODELS_PATH, VERSION_PATH, EngineFacts, engine_facts
from moorage.readiness.protocol import Phase, Probe
from tasks.context import in_thread
from tasks.journal import step, tell
from tasks.retries import PLAIN
from tasks.verify import api_key

ASK_SECONDS = 5.0


@task(name="facts", task_run_name="facts {plan.release}", **PLAIN)
async def read_facts(
    plan: LaunchPlan, measured: tuple[Measurement, ...]
) -> tuple[EngineFacts, ...]:
    """Ask each replica of a verified release for its version, names and context.

    Args:
        plan: What was started.
        measured: What the engines logged about memory.

    Returns:
        One for each container that could be asked; what goes wrong is told in the journal. An
        engine that does not list what it serves is not asked.
    """
    if not ENGINES[plan.engine].lists_models:
        return ()
    with step("facts") as note:
        found = []
        for container in (one for one in plan.containers if one.role == Role.LEADER):
            try:
                found.append(await _facts(plan, container, measured))
            except Exception as error:  # what serves is not ended because it tells little
                tell(f"{container.name} could not be asked about itself: {error}")
        note.say("; ".join(one.summary or f"{one.workload} says nothing" for one in found))
        for surprise in (text for one in found for text in one.surprises):
            tell(surprise)
        return tuple(found)


async def _facts(
    plan: LaunchPlan,
    container: ContainerSpec,
    measured: tuple[Measurement, ...],
) -> EngineFacts:
    key = await in_thread(api_key, plan)
    logged = (one.measured for one in measured if one.workload == container.name)
    return engine_facts(
        container.name,
        container.argv,
        plan.engine_version,
        await _answer(container.endpoint, VERSION_PATH, key),
        await _answer(container.endpoint, MODELS_PATH, key),
        next(logged, None),
    )


async def _answer(endpoint: str, path: str, key: str) -> Any:
    probe = Probe(phase=Phase.ANSWERED, deadline="warm_up_seconds", method="GET", path=path)
    status, answer = await ask(endpoint, probe, ASK_SECONDS, key)
    return answer if status == 200 else None
