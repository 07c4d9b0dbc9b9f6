"""Start and stop workloads: one container, or the containers of a replica in order."""

import socket
import time
from collections.abc import Sequence
from threading import BoundedSemaphore
from urllib.parse import urlsplit

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.secrets import provide_secrets
from moorage.adapters.sources.local import revision_now
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure, combine
from moorage.engines.launch import ContainerSpec, LaunchPlan, planned_workload
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.inventory.access import LOCAL, machine_of
from moorage.operations.history.rollback import changed_source
from moorage.placement.role import Role
from moorage.readiness.diagnosis import diagnose
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName, RuntimeName
from tasks.context import ledger, settings

ABORT_SECONDS = 2.0
"""Grace for an engine that was never ready, since vLLM ignores SIGTERM while it starts."""

STOP_ORDER = (Role.LEADER, Role.FOLLOWER, Role.RAY_HEAD)
"""The order in which the containers of a replica stop."""

STOP_SECONDS = 86_400.0
"""No effective limit: grace and the time-outs of the runtime limit each stop."""

LISTEN_SECONDS = 180.0
"""How long the head of a Ray cluster may take to listen, including an installation of Ray."""

POLL_SECONDS = 0.5
CONNECT_SECONDS = 2.0
LOG_LINES = 5_000


def start(release: str, spec: ContainerSpec) -> Workload:
    """Start one container. Its secrets are read only now and are stored nowhere."""
    ledger().workloads.begin(release, planned_workload(spec))
    names = {variable.secret for variable in spec.environment if variable.secret}
    secrets = provide_secrets(names)
    workload = runtime_for(spec, settings()).start(spec, secrets)
    ledger().workloads.put(release, workload)
    return workload


def start_part(row: ReleaseRow, part: LaunchPlan) -> list[Workload]:
    """Start the containers of a part of a recorded plan; those that others await go first.

    Raises:
        Failure: `PORT_TAKEN` when another program listens where one of them would; as
            `require_same_files`.
    """
    require_same_files(row, part)
    containers, started = {spec.name: spec for spec in part.containers}, []
    for spec in sorted(part.containers, key=lambda spec: bool(spec.awaits)):
        if spec.awaits:
            must_listen(containers[spec.awaits], part.engine)
        _must_be_free(spec)
        started.append(start(row.id, spec))
    return started


def require_same_files(row: ReleaseRow, part: LaunchPlan) -> None:
    """Require that what a part of a plan reads in place on this machine is what its release ran.

    Other hosts have copies, and records of an older moorage do not tell the files.

    Raises:
        Failure: `SOURCE_MISSING` when a directory has changed since.
    """
    if row.release and any(machine_of(one.address) == LOCAL for one in part.containers):
        for files in row.release.local_files:
            now = revision_now(files.source, files.names)
            if now != files.revision:
                raise changed_source(row.release, files.source, files.revision, now)


def _must_be_free(spec: ContainerSpec) -> None:
    """Require that no other program listens on the port of a process: it would answer in its place.

    Docker refuses such a port itself.
    """
    if spec.runtime != RuntimeName.PROCESS or not _listens(spec.endpoint):
        return
    if not runtime_for(spec, settings()).observe(planned_workload(spec)).running:
        detail = f"another program listens on {spec.bind}:{spec.port}, the port of {spec.name}"
        raise Failure(Cause.PORT_TAKEN, detail)


def stop(workload: Workload, grace_seconds: float) -> None:
    """Stop one workload and remove its record. Idempotent."""
    runtime = runtime_for(workload, settings())
    runtime.stop(workload, grace_seconds)
    ledger().workloads.drop(workload.name)


def stop_all(workloads: Sequence[Workload], grace_seconds: float) -> None:
    """Stop workloads, all replicas at the same time; a failure does not stop the others.

    In each replica the leader stops first, because its requests in flight need the others, and the
    head of a Ray cluster last, because all processes of the leader end with it.

    Raises:
        Failure: Of the workload that did not stop; with several, one failure with all details.
    """
    replicas: dict[tuple[str, int], list[Workload]] = {}
    for workload in sorted(workloads, key=lambda one: STOP_ORDER.index(one.role)):
        replicas.setdefault((workload.release, workload.replica), []).append(workload)
    gate, failed = BoundedSemaphore(settings().hosts_at_once), list[tuple[str, Failure]]()

    def stop_replica(replica: Sequence[Workload]) -> list[tuple[str, Failure]]:
        left = []
        with gate:
            for workload in replica:
                try:
                    stop(workload, grace_seconds)
                except Failure as failure:
                    left.append((workload.host, failure))
        return left

    for outcome in map_parallel(stop_replica, list(replicas.values()), STOP_SECONDS):
        if isinstance(outcome, Exception):
            raise outcome
        failed.extend(outcome)
    if failed:
        raise failed[0][1] if len(workloads) == 1 else combine(failed)


def must_listen(spec: ContainerSpec, engine: EngineName, seconds: float = LISTEN_SECONDS) -> None:
    """Wait until a started container accepts connections on its port.

    Raises:
        Failure: `ENGINE_EXITED` when it exits first (or the cause in its log), `LOAD_TIMEOUT` when
            it does not listen in time.
    """
    workload, give_up = planned_workload(spec), time.monotonic() + seconds
    runtime = runtime_for(spec, settings())
    while not _listens(spec.endpoint):
        seen, wrong = runtime.observe(workload), None
        if not seen.running or seen.restarts:
            wrong = Cause.ENGINE_EXITED, seen.with_exit_code
        elif time.monotonic() > give_up:
            late = f"does not listen on {spec.bind}:{spec.port} within {seconds:g} s"
            wrong = Cause.LOAD_TIMEOUT, late
        if wrong:
            log, known = runtime.logs(workload, LOG_LINES), ENGINES[engine].log_causes
            named = f"{spec.role} {spec.name} on {spec.host}: {wrong[1]}"
            raise diagnose(log, known, wrong[0], named)
        time.sleep(POLL_SECONDS)


def _listens(endpoint: str) -> bool:
    where = urlsplit(endpoint)
    try:
        with socket.create_connection((where.hostname or "", where.port or 0), CONNECT_SECONDS):
            return True
    except OSError:
        return False
