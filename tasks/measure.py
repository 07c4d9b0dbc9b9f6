"""Steps measure and facts: read engines' logs and answers; their errors fail no deploy."""

import asyncio
from datetime import UTC, datetime

from moorage.adapters.engines.engine_http import ask
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.common.units import human_bytes
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload, serving
from moorage.memory.calibration import Measurement, calibration_key, key_of_command
from moorage.placement.placement import Placed
from moorage.placement.role import Role
from moorage.readiness.engine_facts import (
    MODELS_PATH,
    VERSION_PATH,
    EngineFacts,
    Measured,
    combine_measured,
    engine_facts,
)
from moorage.readiness.protocol import Phase, Probe
from moorage.releases.release import Release
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.verify import api_key

START_LINES = 20_000
"""More lines than any start logs; the log is read right after the start, before request lines."""

READ_SECONDS = 30.0
ASK_SECONDS = 5.0


@flow_task("measure", "measure {plan.release}")
async def measure(
    placed: Placed, plan: LaunchPlan, workloads: tuple[Workload, ...]
) -> tuple[Measurement, ...]:
    """Read the memory that each workload of a verified release takes from its log, if logged."""
    reader = ENGINES[plan.engine].memory_reader
    if reader is None or plan.on_cluster:
        return ()
    with step("measure") as note:
        found = []
        for workload in serving(workloads):
            try:
                runtime = runtime_for(workload, settings())
                async with asyncio.timeout(READ_SECONDS):
                    log = await in_thread(runtime.logs, workload, START_LINES)
                if measured := reader(log):
                    found.append(_entry(placed, plan, workload, measured))
            except Exception as error:  # an unreadable log must not fail a release that serves
                why = str(error) or type(error).__name__
                tell(f"what {workload.name} logged about memory could not be read: {why}")
        note.say(_summary(combine_measured(one.measured for one in found)))
        return tuple(found)


def record_measurements(release: Release) -> None:
    """Record a release's measurements for later predictions; a failure is only reported."""
    if not release.measured:
        return
    try:
        ledger().measurements.record(release.id, release.measured)
    except Failure as failure:
        tell(f"what {release.id} measured could not be kept: {failure}")


def _entry(placed: Placed, plan: LaunchPlan, workload: Workload, measured: Measured) -> Measurement:
    container = next(spec for spec in plan.containers if spec.name == workload.name)
    host = placed.snapshot.host(container.host)
    key = calibration_key(
        placed.profile,
        plan.engine,
        plan.engine_version,
        container.accelerator_type,
        host.accelerator_name(container.devices),
        container.argv,
    )
    return Measurement(
        workload=workload.name,
        key=key_of_command(key, container.argv),
        measured=measured,
        predicted=placed.placement.predicted,
        release=plan.release,
        measured_at=datetime.now(UTC),
    )


def _summary(measured: Measured | None) -> str:
    if measured is None:
        return "the engine logged nothing about memory"
    sizes = (
        ("weights", measured.weights_bytes or measured.consumed_bytes),
        ("activation", measured.activation_bytes),
        ("CUDA graphs", measured.graph_bytes),
        ("KV cache", measured.kv_cache_bytes),
    )
    return ", ".join(f"{name} {human_bytes(size)}" for name, size in sizes if size is not None)


@flow_task("facts", "facts {plan.release}")
async def read_facts(
    plan: LaunchPlan, measured: tuple[Measurement, ...]
) -> tuple[EngineFacts, ...]:
    """Request version, model names and context from each replica of a verified release.

    Errors go to the journal. An engine that does not list its models gets no request.
    """
    if not ENGINES[plan.engine].lists_models:
        return ()
    with step("facts") as note:
        found = []
        for container in (one for one in plan.containers if one.role == Role.LEADER):
            logged = (one.measured for one in measured if one.workload == container.name)
            try:
                found.append(await _facts(plan, container, next(logged, None)))
            except Exception as error:  # missing facts must not fail a release that serves
                tell(f"{container.name} could not be inspected: {error}")
        note.say(
            "; ".join(
                one.summary or f"{one.workload} names no version and no context" for one in found
            )
        )
        for surprise in (text for one in found for text in one.surprises):
            tell(surprise)
        return tuple(found)


async def _facts(
    plan: LaunchPlan, container: ContainerSpec, measured: Measured | None
) -> EngineFacts:
    key, answers = await in_thread(api_key, plan), []
    for path in (VERSION_PATH, MODELS_PATH):
        probe = Probe(phase=Phase.ANSWERED, deadline="warm_up_seconds", method="GET", path=path)
        status, answer = await ask(container.endpoint, probe, ASK_SECONDS, key)
        answers.append(answer if status == 200 else None)
    version, models = answers
    planned = plan.engine_version
    return engine_facts(container.name, container.argv, planned, version, models, measured)
