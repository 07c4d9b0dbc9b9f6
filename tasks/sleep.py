"""Put a release to sleep to free its memory, and wake it exactly as it ran."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress

from moorage.adapters.engines.engine_sleep import are_asleep, put_engines_to_sleep, wake_engines
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.threads import in_thread, run_uninterrupted
from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.engines.launch import start_groups
from moorage.engines.registry import ENGINES
from moorage.engines.sleep import claims_asleep
from moorage.engines.stopping import Drained
from moorage.engines.workload import Workload
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.fit import port_refusal
from moorage.placement.placement import Placement
from moorage.placement.replacement import missing_parts, move_reason, restore_placement
from moorage.releases.release import FailureRecord, Release, plan_of
from moorage.releases.release_row import ASLEEP, ReleaseRow
from moorage.releases.states import ReleaseState
from tasks.compare import recorded_reachability
from tasks.context import ledger, routes, settings
from tasks.journal import failure_of, step, tell
from tasks.launch import AcceleratorStartLock
from tasks.release import on_failure
from tasks.restore_image import restore_image
from tasks.stopping import add_outcome, close_and_drain, end_drained, sleep_on
from tasks.verify import verify
from tasks.workloads import ABORT_SECONDS, require_same_files, start_part, stop_all


async def put_to_sleep(row: ReleaseRow, reason: str) -> Drained:
    """Put a serving release to sleep once its requests have ended, and free its memory.

    Raises:
        Failure: `BAD_SPEC` when it could not be woken; `RUNTIME_UNAVAILABLE` when one of its hosts
            does not answer. Then it keeps serving.
    """
    _sleeper(row)
    await _must_reach(row)
    cause = f"{ASLEEP}: {reason}"
    with step("sleep") as note:
        drained = await close_and_drain(row, cause)
        cause = add_outcome(cause, drained.summary)
        if (kept := await _sleep_in_engines(row)) is not None:
            await run_uninterrupted(ledger().releases.end, row.id, ReleaseState.ASLEEP, cause, kept)
            free = "its engines stay, and give their memory back"
        else:
            await run_uninterrupted(end_drained, row, ReleaseState.ASLEEP, cause)
            free = "its claims are free"
        note.say(add_outcome(f"{row.id} sleeps; {free}", drained.summary))
    return drained


async def wake(row: ReleaseRow, snapshot: FleetSnapshot) -> None:
    """Wake a release in its place and prove that it answers.

    On failure it remains asleep, and its record has the reason.

    Raises:
        Failure: `NO_FIT` or `PORT_TAKEN` when its place is taken, `PLACE_GONE` when it is gone,
            `SOURCE_MISSING` when its local files have changed; errors of starting and verifying.
    """
    release = _sleeper(row)
    try:
        with _asleep_on_failure(row.id):
            await run_uninterrupted(_claim, row, release, snapshot)
            if not await _wake_in_engines(row, release):
                await run_uninterrupted(stop_all, row.workloads, ABORT_SECONDS)
                await in_thread(restore_image, release, plan_of(row))
                await _start(row, release)
            if release.wake_failure:
                await in_thread(ledger().releases.note_wake, row.id, None)
            await run_uninterrupted(routes().reopen, row.id, "woken")
    except Exception as error:
        await record_failure(row, error)
        raise


def sleeping_release(name: str) -> ReleaseRow:
    """The sleeping release of a model; raises `UNKNOWN_RELEASE` when none sleeps."""
    row = ledger().releases.asleep(name)
    if row is None:
        raise Failure(Cause.UNKNOWN_RELEASE, f"{name} neither runs nor sleeps")
    return row


def _sleeper(row: ReleaseRow) -> Release:
    """The record of a release that can be woken."""
    if row.release is None or row.plan is None or row.placement is None:
        raise Failure(Cause.BAD_SPEC, f"{row.id} has no plan from which it could be woken")
    if row.release.spec.placement.cluster:
        raise Failure(Cause.BAD_SPEC, f"{row.id} runs on a Ray cluster, where no model sleeps")
    return row.release


async def _must_reach(row: ReleaseRow) -> None:
    """Require that all its hosts answer: a release that cannot be stopped would neither serve nor
    sleep until its host is back."""
    with recorded_reachability(row):
        await asyncio.gather(
            *(in_thread(runtime_for(one, settings()).observe, one) for one in row.workloads)
        )


def _claim(row: ReleaseRow, release: Release, snapshot: FleetSnapshot) -> None:
    """Claim the place where it ran; raises as `wake` if it cannot be had."""
    before = release.placement
    assert before, "a sleeper was placed"
    # What was stopped listens nowhere: whoever does on its ports is another program.
    others = snapshot.without(row.id) if row.workloads else snapshot.without_claims(row.id)
    try:
        placement = restore_placement(release.spec, before, release.id, others, "")
        if _ports(placement) != _ports(before):
            raise Refusal(Reason.TAKEN, "another program listens on its port")
    except Refusal as refusal:
        reason = move_reason(before, release.id, refusal)
        advice = f"`moorage rollback {row.model} --to {row.id}` places it again."
        raise Failure(_why_taken(before, others), reason, suggestion=advice) from refusal
    ledger().claims.commit(
        row.id,
        placement.claims,
        others,
        overcommit=release.spec.placement.overcommit,
        to=ReleaseState.WAKING,
    )


def _why_taken(before: Placement, others: FleetSnapshot) -> Cause:
    """Why a place cannot be had. Other models that sleep make room, but free no port."""
    if missing_parts(before.seats, others):
        return Cause.PLACE_GONE
    taken = any(port_refusal(others.host(one.host), one.index) for one in _ports(before))
    return Cause.PORT_TAKEN if taken else Cause.NO_FIT


def _ports(placement: Placement) -> list[Claim]:
    return [claim for claim in placement.claims if claim.resource == Resource.PORT]


async def _sleep_in_engines(row: ReleaseRow) -> tuple[Claim, ...] | None:
    """Let engines sleep without stopping; returns their remaining claims, None = stop them instead.

    A release that is recovered while it falls asleep is stopped, too.
    """
    release = _sleeper(row)
    engine = ENGINES[row.plan.engine] if row.plan else None
    how = engine.sleep(release.spec) if engine else None
    if not (engine and how and release.placement):
        return None
    try:
        await put_engines_to_sleep(row.serving, how, release.spec.readiness.deadlines.load_seconds)
    except Failure as failure:
        tell(f"{failure}; its engines are stopped instead")
        return None
    return claims_asleep(release.placement, engine.bytes_asleep)


async def _wake_in_engines(row: ReleaseRow, release: Release) -> bool:
    """Wake engines that sleep while running, and prove that they answer.

    Returns:
        False if they do not run, wake or answer; then the caller has to start them.
    """
    assert release.plan
    assert release.profile
    how = ENGINES[release.plan.engine].sleep(release.spec)
    if how is None or not row.workloads or not await are_asleep(row.serving, how):
        return False
    if how.reads_files:
        await in_thread(require_same_files, row, release.plan)
    proven = tuple[Workload, ...]()
    try:
        async with _sole_start(row, release):
            with step("wake") as note:
                seconds = release.spec.readiness.deadlines.load_seconds
                await wake_engines(row.serving, how, seconds)
                note.say(", ".join(f"{one.name} on {one.host}" for one in row.serving))
            for part in start_groups(release.plan):
                names = {spec.name for spec in part.containers}
                workloads = tuple(one for one in row.workloads if one.name in names)
                await verify(release.spec, release.profile, part, workloads, proven)
                proven += workloads
    except Failure as failure:
        tell(f"{failure}; its engines are started again")
        return False
    return True


async def _start(row: ReleaseRow, release: Release) -> None:
    """Start the parts of its plan one after the other, verifying each before the next."""
    assert release.plan
    assert release.profile
    started: tuple[Workload, ...] = ()
    async with _sole_start(row, release):
        for part in start_groups(release.plan):
            with step("launch") as note:
                workloads = tuple(await run_uninterrupted(start_part, row, part))
                note.say(", ".join(f"{one.name} on {one.host}" for one in workloads))
            await verify(release.spec, release.profile, part, workloads, started)
            started += workloads


@asynccontextmanager
async def _sole_start(row: ReleaseRow, release: Release) -> AsyncIterator[None]:
    """Lock its accelerators against other starts: vLLM measures free memory while it starts."""
    assert release.placement
    lock = AcceleratorStartLock(row.id, row.model, release.placement)
    try:
        await lock.acquire(release.spec.readiness.deadlines)
        yield
    finally:
        lock.release()


async def record_failure(row: ReleaseRow, error: Exception) -> None:
    """Keep why a release did not wake, with its engine's last lines; its containers are gone."""
    if failure := failure_of(error):
        record = FailureRecord.model_validate(failure, from_attributes=True)
        before = row.release and row.release.wake_failure
        if before and not record.log_tail:  # that of the last try in which an engine started
            record = record.model_copy(update={"log_tail": before.log_tail})
        with suppress(Failure):  # the wake fails for its own reason
            await in_thread(ledger().releases.note_wake, row.id, record)


def _asleep_on_failure(release: str) -> AbstractContextManager[None]:
    def undo(cause: str) -> None:
        try:
            sleep_on(release, cause)
        except Failure as failure:
            tell(
                f"{release} stays `waking` and keeps its claims: {failure}. Once its host answers,"
                " the same command or `moorage reconcile` puts it back to sleep."
            )

    return on_failure(undo)
