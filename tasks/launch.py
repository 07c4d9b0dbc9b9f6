"""Step launch: start and stop what a plan says. No retries: the saga undoes a half launch."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from threading import BoundedSemaphore
from urllib.parse import urlsplit

from prefect import task

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.secrets import provide_secrets
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure, combine
from moorage.engines.launch import ContainerSpec, LaunchPlan, Workload, planned_workload
from moorage.engines.recovery import Correction
from moorage.engines.registry import ENGINES
from moorage.inventory.access import LOCAL
from moorage.placement.placement import Role
from moorage.readiness.diagnosis import diagnose
from moorage.releases.release import ReleaseState
from moorage.spec import EngineName
from tasks.context import in_thread, ledger, run_uninterrupted, settings
from tasks.journal import step, tell
from tasks.map_hosts import HostCall, map_hosts
from tasks.retries import PLAIN

ABORT_SECONDS = 2.0
"""How long an engine that never was ready may take to end: vLLM ignores SIGTERM while it starts."""

STOP_ORDER = (Role.LEADER, Role.FOLLOWER, Role.RAY_HEAD)
"""The order in which the parts of a replica are stopped."""

STOP_SECONDS = 86_400.0
"""Each stop has its own end: its grace, and the time-outs of its runtime."""


LISTEN_SECONDS = 180.0
"""How long the head of a Ray cluster may take; where it installs Ray first, that is most of it."""

POLL_SECONDS = 0.5
CONNECT_SECONDS = 2.0
LOG_LINES = 5_000


@task(name="launch", task_run_name="launch {plan.release}", timeout_seconds=600, **PLAIN)
async def launch(plan: LaunchPlan) -> tuple[Workload, ...]:
    """Start every container of a plan, each written down before it is started.

    Of a release that starts in turns, each part of its plan is launched by itself.
    """
    with step("launch") as note:
        await in_thread(_begin, plan.release)
        workloads = await _everywhere(plan)
        note.say(", ".join(f"{workload.name} on {workload.host}" for workload in workloads))
        return tuple(workloads)


@task(name="launch on a host", task_run_name="launch {release} on {specs[0].host}", **PLAIN)
async def launch_on(release: str, specs: tuple[ContainerSpec, ...]) -> tuple[Workload, ...]:
    """Start the containers of one host, one after the other."""
    return tuple([await run_uninterrupted(start, release, spec) for spec in specs])


async def _everywhere(plan: LaunchPlan) -> list[Workload]:
    """Start on several hosts at once; in the order of the plan.

    What others await goes first. Always in this process: what a Ray worker starts could not be
    undone while it starts.
    """
    first = [spec for spec in plan.containers if not spec.awaits]
    started = await _side_by_side(plan.release, first)
    later = [spec for spec in plan.containers if spec.awaits]
    awaited = {spec.awaits for spec in later}
    for spec in first:
        if spec.name in awaited:
            await in_thread(must_listen, spec, plan.engine)
    started |= await _side_by_side(plan.release, later)
    return [started[spec.name] for spec in plan.containers]


async def _side_by_side(release: str, specs: Sequence[ContainerSpec]) -> dict[str, Workload]:
    hosts: dict[str, list[ContainerSpec]] = {}
    for spec in specs:
        hosts.setdefault(spec.host, []).append(spec)
    calls = [
        HostCall(host, LOCAL, {"release": release, "specs": tuple(own)})
        for host, own in hosts.items()
    ]
    started = await map_hosts(launch_on, calls, settings().hosts_at_once)
    return {workload.name: workload for workloads in started for workload in workloads}


def _begin(release: str) -> None:
    if ledger().releases.get(release).state != ReleaseState.STARTING:
        ledger().releases.move(release, ReleaseState.STARTING)


def start(release: str, spec: ContainerSpec) -> Workload:
    """Start one container. Its secrets are looked up now and live nowhere else."""
    ledger().workloads.begin(release, planned_workload(spec))
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


def stop_all(workloads: Sequence[Workload], grace_seconds: float) -> None:
    """Stop workloads, replica beside replica; all are tried.

    In each the leader ends first, for requests that it has in flight need the others, and the head
    of a Ray cluster last, for all the leader's processes end with it.

    Raises:
        Failure: Of what did not stop; of several `joint` into one.
    """
    replicas: dict[tuple[str, int], list[Workload]] = {}
    for workload in sorted(workloads, key=lambda one: STOP_ORDER.index(one.role)):
        replicas.setdefault((workload.release, workload.replica), []).append(workload)
    gate, failed = BoundedSemaphore(settings().hosts_at_once), list[tuple[str, Failure]]()

    def one(group: Sequence[Workload]) -> list[tuple[str, Failure]]:
        with gate:
            return _stopped(group, grace_seconds)

    for outcome in map_parallel(one, list(replicas.values()), STOP_SECONDS):
        if isinstance(outcome, Exception):
            raise outcome
        failed.extend(outcome)
    if failed:
        raise failed[0][1] if len(workloads) == 1 else combine(failed)


def _stopped(group: Sequence[Workload], grace_seconds: float) -> list[tuple[str, Failure]]:
    failed = []
    for workload in group:
        try:
            stop(workload, grace_seconds)
        except Failure as failure:
            failed.append((workload.host, failure))
    return failed


@task(name="correct", task_run_name="correct {part.release}", **PLAIN)
async def correct(part: LaunchPlan, correction: Correction) -> None:
    """Stop and remove what the first try of a part has started; its names are used again.

    Args:
        part: What was started.
        correction: What the second try will change.
    """
    with step("correct") as note:
        tell(f"the first try failed ({correction.cause}); trying again with {correction.summary}")
        for spec in part.containers:
            await run_uninterrupted(stop, planned_workload(spec), ABORT_SECONDS)
        note.say(correction.summary)


def must_listen(spec: ContainerSpec, engine: EngineName, seconds: float = LISTEN_SECONDS) -> None:
    """Wait until a container takes connections on its port.

    Args:
        spec: The container; it was started.
        engine: Knows what its log gives away.
        seconds: How long to wait.

    Raises:
        Failure: `ENGINE_EXITED` when it ends first (or what its log says), `LOAD_TIMEOUT` when it
            never listens.
    """
    workload, give_up = planned_workload(spec), time.monotonic() + seconds
    runtime = runtime_for(spec.runtime, spec.address, settings())
    known = ENGINES[engine].log_causes
    while not _listens(spec.endpoint):
        seen = runtime.observe(workload)
        named = f"{spec.role} {spec.name} on {spec.host}"
        if not seen.running or seen.restarts:
            code = "" if seen.exit_code is None else f", exit code {seen.exit_code}"
            detail = f"{named}: {seen.detail}{code}"
            raise diagnose(runtime.logs(workload, LOG_LINES), known, Cause.ENGINE_EXITED, detail)
        if time.monotonic() > give_up:
            detail = f"{named}: does not listen on {spec.bind}:{spec.port} within {seconds:g} s"
            raise diagnose(runtime.logs(workload, LOG_LINES), known, Cause.LOAD_TIMEOUT, detail)
        time.sleep(POLL_SECONDS)


def _listens(endpoint: str) -> bool:
    where = urlsplit(endpoint)
    try:
        with socket.create_connection((where.hostname or "", where.port or 0), CONNECT_SECONDS):
            return True
    except OSError:
        return False
