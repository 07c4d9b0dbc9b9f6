"""Step place: choose hosts, accelerators and ports, and claim them in the ledger."""

from dataclasses import replace

from moorage.adapters.system.process import paused_collector
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.pin import AssetRole
from moorage.placement.demand import Subject
from moorage.placement.memory import memory_of
from moorage.placement.on_cluster import propose_on_cluster
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.placement.propose import NoFit, propose
from moorage.placement.replacement import move_reason, pinned_spec, restore_placement
from moorage.releases.release import Release
from moorage.reports.plan_report import placement_document
from moorage.spec import ModelSpec, slug
from tasks.artifacts import show_markdown
from tasks.context import ledger
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.survey import take_snapshot

CLAIM_ATTEMPTS = 12
"""One flow wins each round, so any number above the default of concurrent deploys (8) suffices."""


@flow_task("place", "place {analyzed.spec.name}")
async def dry_place(
    analyzed: Analyzed, snapshot: FleetSnapshot, running: str, target: Release | None = None
) -> Placement:
    """Choose where the model would run, without claiming it."""
    with step("place") as note:
        placement = await _propose(analyzed, snapshot, running, target)
        await _show(analyzed.spec, placement, summary(placement))
        note.say(summary(placement))
        return placement


@flow_task("place", "place {analyzed.spec.name}", timeout_seconds=120)
async def place(
    analyzed: Analyzed,
    fleet: Fleet,
    snapshot: FleetSnapshot,
    release: str,
    running: str,
    target: Release | None = None,
    sleeper: str = "",
) -> Placed:
    """Choose where the model runs and claim all seats, or none.

    If another deploy claims the place after the survey, the fleet is surveyed again, a few times.
    An earlier release (`target`) returns to its place, unless that is taken or gone. A release of
    the model that sleeps (`sleeper`) gives up the ports that are needed. Raises `CLAIM_CONFLICT`
    when other deploys were faster each time, and errors of the proposal.
    """
    with step("place") as note:
        for attempt in range(1, CLAIM_ATTEMPTS + 1):
            snapshot = snapshot.without_claims(sleeper) if sleeper else snapshot
            placement = await _propose(analyzed, snapshot, running, target)
            placed = analyzed.placed(placement, snapshot, release)
            try:
                await in_thread(_claim, placed, running, sleeper)
                break
            except Failure as failure:
                if failure.cause != Cause.CLAIM_CONFLICT or attempt == CLAIM_ATTEMPTS:
                    raise
            snapshot = await take_snapshot(fleet)
        text = summary(placement)
        note.say(text)
        if placement.moved:
            tell(f"placed again: {placement.moved}")
        await _show(placed.spec, placement, f"Placement of {release}: {text}")
        return placed


def subject_of(analyzed: Analyzed) -> Subject:
    """The model to place, with the ledger's measurements of its architecture."""
    spec, model, profile = analyzed.spec, analyzed.model, analyzed.profile
    architecture = profile.architectures[0] if profile.architectures else profile.model_type
    companions = [(one.role, one.model.weights.bytes) for one in model.companions]
    return Subject(
        spec=spec,
        profile=profile,
        memory=memory_of(spec, model, profile),
        staged=f"{model.source}@{model.revision}",
        disk_bytes=model.bytes_to_stage,
        companion_bytes=sum(size for _, size in companions),
        adapter_bytes=sum(size for role, size in companions if role == AssetRole.ADAPTER),
        measured=ledger().measurements.of(architecture),
    )


def _claim(placed: Placed, running: str, sleeper: str) -> None:
    """Claim all seats in the ledger, replacing claims of a release that stops first or sleeps."""
    snapshot, stops = placed.snapshot, running if placed.placement.stop_first else ""
    ledger().claims.commit(
        placed.release,
        placed.placement.claims,
        snapshot.without(stops) if stops else snapshot,
        instead_of=stops or sleeper,
        overcommit=placed.spec.placement.overcommit,
    )


async def _propose(
    analyzed: Analyzed, snapshot: FleetSnapshot, running: str, target: Release | None
) -> Placement:
    """The place where `target` ran, else the best place, with the reason for the move."""
    before = target.placement if target else None
    if target and before is None:
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{target.id} was never placed")
    if target is None or before is None or target.spec.placement.cluster:
        return await _propose_best(analyzed, snapshot, running)
    try:
        return restore_placement(target.spec, before, target.id, snapshot, running)
    except Refusal as refusal:
        reason = move_reason(before, target.id, refusal)
    spec = pinned_spec(target.spec, before, target.image)
    placement = await _propose_best(replace(analyzed, spec=spec), snapshot, running)
    return placement.model_copy(update={"moved": reason})


async def _propose_best(analyzed: Analyzed, snapshot: FleetSnapshot, running: str) -> Placement:
    """The place that fits best; if none fits, show the verdicts and raise `NoFit`."""

    def proposed() -> Placement:
        subject = subject_of(analyzed)
        if name := subject.spec.placement.cluster:
            cluster = snapshot.cluster(name)
            return propose_on_cluster(subject.spec, subject.profile, cluster, running)
        with paused_collector():
            return propose(subject, snapshot, ENGINES, running)

    try:
        return await in_thread(proposed)
    except NoFit as failure:
        await _show(analyzed.spec, failure.placement, failure.suggestion)
        raise


async def _show(spec: ModelSpec, placement: Placement, description: str) -> None:
    page = placement_document(spec.name, placement).markdown()
    await show_markdown(f"placement-{slug(spec.name)}", page, description)


def summary(placement: Placement) -> str:
    """A placement in one line."""
    seats = "; ".join(f"{seat.place} ({seat.runtime}), {seat.reason}" for seat in placement.seats)
    stop = " after the running release has stopped" if placement.stop_first else ""
    moved = f"; {placement.moved}" if placement.moved else ""
    return f"{placement.engine} on {seats}{stop}{moved}"
