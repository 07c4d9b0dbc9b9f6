"""Step launch: start and stop what a plan says. No retries: the saga undoes a half launch."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.ledger import locks
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
from tasks.restart import answers, lease_of, lock_names
from tasks.workloads import ABORT_SECONDS, must_listen, start, stop

POLL_SECONDS = 0.5

GRACE_SECONDS = 120.0
"""How much longer than its start another release is waited for: what it replaces has to end."""

LEASE_SECONDS = locks.LEASE_SECONDS + 2 * locks.RENEW_SECONDS
"""Longer than the lease of the model's lock, which its holder took before. A flow that takes this
lock over therefore finds the model unlocked, and stops what the killed flow was starting."""


@flow_task("launch", "launch {plan.release}", timeout_seconds=600)
async def launch(plan: LaunchPlan) -> tuple[Workload, ...]:
    """Start every container of a plan, each written down before it is started.

    Of a release that starts in turns, each part of its plan is launched by itself.
    """
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
    """Start on several hosts at once; in the order of the plan.

    What others await goes first. Always in this process: what a Ray worker starts could not be
    undone while it starts.
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
    """Stop and remove what the first try of a part has started; its names are used again."""
    with step("correct") as note:
        tell(f"the first try failed ({correction.cause}); trying again with {correction.summary}")
        for spec in part.containers:
            await run_uninterrupted(stop, planned_workload(spec), ABORT_SECONDS)
        note.say(correction.summary)


class AcceleratorStartLock:
    """The right to start engines on the accelerators of a release, alone.

    It covers those of the old release too, which ends meanwhile and may have to start again.
    """

    def __init__(
        self,
        release: str,
        model: str,
        placement: Placement,
        old: ReleaseRow | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = lock_names(placement, old.placement if old else None)
        self._release, self._model, self._clock = release, model, clock
        self._old, self._ends_first = old, bool(placement.stop_first)
        self._token, self._renewal = uuid.uuid4().hex, ExitStack()

    async def acquire(self, deadlines: Deadlines) -> None:
        """Wait until nobody else starts there; then nobody else does until `release`.

        What a killed flow was starting there is stopped first. Each start that goes before is
        waited for as long as one may take by these deadlines, and `GRACE_SECONDS` more.

        Raises:
            Failure: `ACCELERATOR_STARTING` when one of them does not end in time.
        """
        self._renewal.enter_context(ledger().locks.renewal(self._token, LEASE_SECONDS))
        patience = deadlines.load_seconds + deadlines.warm_up_seconds + GRACE_SECONDS
        if holders := await self._take():
            with step("wait") as note:
                note.say(await self._wait_for_others(holders, patience))
        await run_uninterrupted(recover_others, self._model)

    def release(self) -> None:
        """Let others start there. Nothing happens when they may already."""
        self._renewal.close()

    async def _wait_for_others(self, holders: dict[str, Owner], patience: float) -> str:
        """Wait for one holder after the other; describes the last one."""
        waited_for, give_up = "", 0.0
        while holders:
            name, owner = next(iter(holders.items()))
            host, device = name.removeprefix("start:").split(":", 1)
            doing = f"{owner.note or f'process {owner.pid}'} is starting on {host} {device}"
            if doing != waited_for:
                waited_for, give_up = doing, self._clock() + patience
                tell(f"waits: {doing}")
            if self._clock() >= give_up:
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
        """Whether the old release, which reconciling has started again, answers or has ended.

        Nobody else checks that: reconciling leaves models alone on which a flow works.
        """
        for workload in old.serving:
            with suppress(Failure):  # what is unreachable disturbs nobody who starts elsewhere
                runtime = runtime_for(workload, settings())
                seen = await in_thread(runtime.observe, workload)
                if seen.running and await answers(old, workload):
                    return False
        return True

    def _try(self) -> dict[str, Owner]:
        """Who starts there; nobody when it is this release's turn now."""
        own = ledger().locks  # looked at first: that disturbs no writer
        if holders := own.holders(self.names):
            return holders
        return own.take_all(self.names, self._token, this_process(self._release), LEASE_SECONDS)
