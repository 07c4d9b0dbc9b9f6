"""Step launch: start the containers of a plan. No retries: the saga undoes a partial launch."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.ledger.locks import Owner, this_process
from moorage.adapters.system.threads import in_thread, run_uninterrupted
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, LaunchPlan, planned_workload
from moorage.engines.recovery import Correction
from moorage.engines.workload import Workload
from moorage.inventory.access import LOCAL
from moorage.placement.placement import Placement
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import Deadlines
from tasks.cleanup import recover_others
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.map_hosts import HostCall, map_hosts
from tasks.probe import answers
from tasks.start_lease import START_LEASE_SECONDS, lease_of, lock_names
from tasks.workloads import ABORT_SECONDS, must_listen, start, stop

POLL_SECONDS = 0.5

GRACE_SECONDS = 120.0
"""Extra wait for another release's start, during which its predecessor may have to stop."""


@flow_task("launch", "launch {plan.release}", timeout_seconds=600)
async def launch(plan: LaunchPlan) -> tuple[Workload, ...]:
    """Start every container of a plan; each is recorded in the ledger before it starts."""
    with step("launch") as note:
        if (await in_thread(ledger().releases.get, plan.release)).state != ReleaseState.STARTING:
            await in_thread(ledger().releases.move, plan.release, ReleaseState.STARTING)
        workloads = await _start_all(plan)
        note.say(", ".join(f"{workload.name} on {workload.host}" for workload in workloads))
        return workloads


@flow_task("launch on a host", "launch {release} on {specs[0].host}")
async def launch_on(release: str, specs: tuple[ContainerSpec, ...]) -> tuple[Workload, ...]:
    """Start the containers of one host, one after the other."""
    return tuple([await run_uninterrupted(start, release, spec) for spec in specs])


async def _start_all(plan: LaunchPlan) -> tuple[Workload, ...]:
    """Start containers on several hosts at once; returns their workloads in the plan's order.

    Containers that others await start first. Always in this process: a start in a Ray worker could
    not be undone while it is in progress.
    """
    first = [spec for spec in plan.containers if not spec.awaits]
    started = await _start_on_hosts(plan.release, first)
    later = [spec for spec in plan.containers if spec.awaits]
    for spec in first:
        if any(one.awaits == spec.name for one in later):
            await in_thread(must_listen, spec, plan.engine)
    started |= await _start_on_hosts(plan.release, later)
    return tuple(started[spec.name] for spec in plan.containers)


async def _start_on_hosts(release: str, specs: Sequence[ContainerSpec]) -> dict[str, Workload]:
    hosts: dict[str, list[ContainerSpec]] = {}
    for spec in specs:
        hosts.setdefault(spec.host, []).append(spec)
    calls = [
        HostCall(host, LOCAL, {"release": release, "specs": tuple(own)})
        for host, own in hosts.items()
    ]
    started = await map_hosts(launch_on, calls, settings().hosts_at_once)
    return {workload.name: workload for workloads in started for workload in workloads}


@flow_task("correct", "correct {part.release}")
async def correct(part: LaunchPlan, correction: Correction) -> None:
    """Stop and remove the containers of a failed first try; the second try reuses their names."""
    with step("correct") as note:
        tell(f"the first try failed ({correction.cause}); trying again with {correction.summary}")
        for spec in part.containers:
            await run_uninterrupted(stop, planned_workload(spec), ABORT_SECONDS)
        note.say(correction.summary)


class AcceleratorStartLock:
    """Exclusive lock for starting engines on the accelerators of a release.

    Also covers the accelerators of the old release, which stops meanwhile and may have to restart.
    """

    def __init__(
        self, release: str, model: str, placement: Placement, old: ReleaseRow | None = None
    ) -> None:
        self.names = lock_names(placement, old.placement if old else None)
        self._release, self._model = release, model
        self._old, self._ends_first = old, bool(placement.stop_first)
        self._token, self._renewal = uuid.uuid4().hex, ExitStack()

    async def acquire(self, deadlines: Deadlines) -> None:
        """Wait until no other release starts on these accelerators, then lock them.

        Waits for each earlier start as long as these deadlines allow a start, plus
        `GRACE_SECONDS`, then raises `ACCELERATOR_STARTING`. With the lock held, stops the
        unfinished starts of killed flows.
        """
        self._renewal.enter_context(ledger().locks.renewal(self._token, START_LEASE_SECONDS))
        patience = deadlines.load_seconds + deadlines.warm_up_seconds + GRACE_SECONDS
        if holders := await self._take():
            with step("wait") as note:
                note.say(await self._wait_for_others(holders, patience))
        await run_uninterrupted(recover_others, self._model)

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        self._renewal.close()

    async def _wait_for_others(self, holders: dict[str, Owner], patience: float) -> str:
        """Wait for one holder after the other; returns a summary that names the last one."""
        waited_for, give_up = "", 0.0
        while holders:
            name, owner = next(iter(holders.items()))
            host, device = name.removeprefix("start:").split(":", 1)
            doing = f"{owner.note or f'process {owner.pid}'} is starting on {host} {device}"
            if doing != waited_for:
                waited_for, give_up = doing, time.monotonic() + patience
                tell(f"waits: {doing}")
            if time.monotonic() >= give_up:
                detail = f"{doing}, and has not ended within {patience:g} s"
                raise Failure(Cause.ACCELERATOR_STARTING, detail)
            await asyncio.sleep(POLL_SECONDS)
            holders = await self._take()
        return f"until the start before had ended: {waited_for}"

    async def _take(self) -> dict[str, Owner]:
        holders, old = await run_uninterrupted(self._try), self._old
        starts_again = old is not None and old.id in {owner.note for owner in holders.values()}
        if old and starts_again and (self._ends_first or await self._has_answered_or_ended(old)):
            await in_thread(ledger().locks.drop, lease_of(old.id))
            return await run_uninterrupted(self._try)
        return holders

    async def _has_answered_or_ended(self, old: ReleaseRow) -> bool:
        """Whether the old release, which reconciling has restarted, answers or has ended.

        Reconciling does not check this itself while a flow holds the model's lock.
        """
        for workload in old.serving:
            with suppress(Failure):  # an unreachable engine does not disturb a start elsewhere
                runtime = runtime_for(workload, settings())
                seen = await in_thread(runtime.observe, workload)
                if seen.running and await answers(old, workload):
                    return False
        return True

    def _try(self) -> dict[str, Owner]:
        """Take the locks if they are free; returns the holders, empty when they were taken."""
        own = ledger().locks
        # Read first: reading does not block writers.
        return own.holders(self.names) or own.take_all(
            self.names, self._token, this_process(self._release), START_LEASE_SECONDS
        )
