"""Step compare: find the release that serves a model name, and whether its hosts answer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from moorage.adapters.engines.engine_http import ask
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.threads import (
    hold_lock,
    in_thread,
    run_uninterrupted,
    threaded,
    variable_scope,
)
from moorage.common.failures import OUT_OF_REACH, Cause, Failure
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Fleet
from moorage.readiness.protocol import Phase, Probe
from moorage.releases.addresses import addresses_in, reached_at
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import DEPLOYED, ReleaseState
from moorage.spec import ModelSpec, RuntimeName
from tasks.addresses import follow
from tasks.cleanup import recover_all
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step, tell

HEALTH_SECONDS = 5.0

_decided: ContextVar[str] = ContextVar("decided", default="")
_spares: ContextVar[bool] = ContextVar("spares", default=False)


@asynccontextmanager
async def sole_flow(
    model: str,
    flow_run_id: str,
    *,
    fleet: Fleet | None = None,
    retires: bool = False,
    replaces: bool = False,
) -> AsyncIterator[None]:
    """Be the only flow that works on a model name, and start from a clean state.

    Reaches hosts as `fleet` says, which the policy allows. Cleans up after killed flows first, also
    of other models whose lock is free: they may hold the memory that this model needs. A release
    that stopped for a successor which never served is started again; only a flow that `retires` it,
    or `replaces` it and cannot start it, ends it.
    """
    lock = ledger().locks.holding(
        model,
        wait_seconds=settings().lock_wait_seconds,
        note=f"flow run {flow_run_id}",
        on_wait=lambda other: tell(f"waits: {other}"),
    )
    async with hold_lock(lock):
        if fleet:
            await follow(fleet)
        await run_uninterrupted(recover_all, model, retires=retires, replaces=replaces)
        yield


ELSEWHERE = (
    "To deploy the model elsewhere before its host is back, list the host under `avoid` in the"
    " fleet file, and keep it under `hosts`."
)


@flow_task("compare", "compare with what serves {spec.name}")
async def serving(spec: ModelSpec, fleet: Fleet) -> tuple[ReleaseRow | None, bool]:
    """The release that is recorded as serving the model name, and whether it is healthy.

    Its hosts are reached as the fleet says. One with a host that does not answer and that the
    fleet avoids counts as unhealthy.

    Raises:
        Failure: When another host does not answer: the release may well serve there.
    """
    with step("compare") as note:
        row = await in_thread(_running, spec.name, fleet)
        if row is None:
            note.say("nothing serves this name yet")
            return None, False
        healthy, failures = await _health(row, spec)
        record_reachability(row, next(iter(failures.values()), None))
        for host, failure in failures.items():
            if failure.cause not in OUT_OF_REACH:
                raise failure
            if host not in fleet.avoided_hosts:
                on_hosts = all(one.runtime != RuntimeName.RAY for one in row.workloads)
                failure.suggestion += f" {ELSEWHERE}" if on_hosts else ""
                raise failure
        note.say(f"{row.id} {'serves' if healthy else 'is recorded as running, but is not there'}")
        return row, healthy


def _running(model: str, fleet: Fleet) -> ReleaseRow | None:
    row = ledger().releases.running(model)
    return row and reached_at(row, addresses_in(fleet, ledger().unseen_hosts.known_hosts()))


async def _health(row: ReleaseRow, spec: ModelSpec) -> tuple[bool, dict[str, Failure]]:
    """Whether all its workloads are healthy, and the failure of each host that does not answer."""
    path = (row.release.spec if row.release else spec).readiness.probe.path
    probe = Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path)
    found = await asyncio.gather(*(_is_healthy(one, probe) for one in row.workloads))
    hosts = (one.host for one in row.workloads)
    failures = {
        host: one for host, one in zip(hosts, found, strict=True) if isinstance(one, Failure)
    }
    return bool(found) and all(one is True for one in found), failures


async def _is_healthy(workload: Workload, probe: Probe) -> bool | Failure:
    """Whether a workload runs and its engine answers; the failure if its host does not."""
    try:
        seen = await in_thread(runtime_for(workload, settings()).observe, workload)
    except Failure as failure:
        return failure
    if not seen.running or seen.ready is False:
        return False
    if seen.ready or not workload.serves:
        return True
    status, _ = await ask(workload.endpoint, probe, HEALTH_SECONDS)
    return status == 200


@contextmanager
def recorded_reachability(row: ReleaseRow) -> Iterator[None]:
    """Record a serving release as unreachable or reachable, as its hosts answer in this block."""
    try:
        yield
    except Failure as failure:
        record_reachability(row, failure)
        raise
    record_reachability(row, None)


def record_reachability(row: ReleaseRow, failure: Failure | None) -> None:
    """Record a serving release as unreachable after a failure of one of its hosts, else reachable.

    Says nothing about the release's health: a host with a dead engine answers, too.
    """
    if failure and row.state == ReleaseState.RUNNING:
        mark(row, ReleaseState.UNREACHABLE, str(failure))
    elif not failure and row.state == ReleaseState.UNREACHABLE:
        mark(row, ReleaseState.RUNNING, "seen again")


def mark(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Record that a release is unreachable or seen again, unless its state has changed since."""
    try:
        ledger().releases.move(row.id, to, cause)
    except Failure as failure:
        if failure.cause is not Cause.LOST_LOCK:  # another flow has changed its state
            raise


@contextmanager
def decision_scope(release: str, *, spares: bool = False) -> Iterator[None]:
    """Allow the deploys of this block only while this release is the last one that ran.

    One that it `spares` is not stopped before its successor serves.
    """
    with variable_scope(_decided, release), variable_scope(_spares, spares):
        yield


def replaceable(old: ReleaseRow | None) -> str:
    """The id of a release that may be stopped first, as its plan allows a restart; else empty."""
    return old.id if old and old.plan and not _spares.get() else ""


@threaded
def needs_approval(spec: ModelSpec) -> bool:
    """Whether a deploy needs a person's approval, by its spec or that of what serves or sleeps.

    A flow that decided on a release before has asked for what that needs.
    """
    own = ledger().releases
    rows = () if _decided.get() else (own.running(spec.name), own.asleep(spec.name))
    specs = (spec, *own.specs(row.id for row in rows if row).values())
    return any(one.redeploy.needs_approval for one in specs)


@threaded
def superseded_since(model: str) -> str:
    """Why an earlier decision to deploy is out of date; empty = it is not, or there was none.

    The caller holds the model's lock.
    """
    if not (decided := _decided.get()):
        return ""
    own = ledger().releases
    last = own.running(model) or own.asleep(model) or own.last_that_ran(model)
    if last is None:
        return ""
    if last.id != decided:
        return f"{last.id} is there by now, and this was decided on {decided}"
    if last.state not in DEPLOYED | {ReleaseState.ERROR}:
        return f"{last.id} is {last.state} by now"
    return ""
