"""Step launch: start what the plan says. No retries: the saga around it undoes a half launch."""

from __future__ import annotations

from prefect import task

from moorage.adapters.runtime import runtime_for
from moorage.adapters.secrets import provide_secrets
from moorage.launch import ContainerSpec, LaunchPlan, Workload, planned_workload
from moorage.release import ReleaseState
from tasks.context import in_thread, ledger, settings
from tasks.joining import must_listen
from tasks.journal import step
from tasks.retries import PLAIN

ABORT_SECONDS = 2.0
"""How long an engine that never was ready may take to end: vLLM ignores SIGTERM while it starts."""


@task(name="launch", task_run_name="launch {plan.release}", timeout_seconds=600, **PLAIN)
async def launch(plan: LaunchPlan) -> tuple[Workload, ...]:
    """Start every container of a plan, each written down before it is started.

    Of a release that starts in turns, each part of its plan is launched by itself.
    """
    with step("launch") as note:
        await in_thread(_begin, plan.release)
        workloads = [await _started(plan, spec) for spec in plan.containers]
        note.say(", ".join(f"{workload.name} on {workload.host}" for workload in workloads))
        return tuple(workloads)


async def _started(plan: LaunchPlan, spec: ContainerSpec) -> Workload:
    """Start one container, once what it awaits is there."""
    if spec.awaits:
        first = next(other for other in plan.containers if other.name == spec.awaits)
        await in_thread(must_listen, first, plan.engine)
    return await in_thread(start, plan.release, spec)


def _begin(release: str) -> None:
    if ledger().releases.get(release).state != ReleaseState.STARTING:
        ledger().releases.move(release, ReleaseState.STARTING)


def start(release: str, spec: ContainerSpec) -> Workload:
    """Start one container. Its secrets are looked up now and live nowhere else."""
    ledger().workloads.put(release, planned_workload(spec))
    names = {variable.secret for variable in spec.environment if variable.secret}
    secrets = provide_secrets(names)
    workload = runtime_for(spec.runtime, spec.address, settings()).start(spec, secrets)
    ledger().workloads.put(release, workload)
    return workload


def stop(workload: Workload, grace_seconds: float) -> None:
    """Stop one workload and strike it out. Nothing happens when it is gone."""
    runtime = runtime_for(workload.runtime, workload.address, settings())
    runtime.stop(workload, grace_seconds)
    ledger().workloads.drop(workload.name)
