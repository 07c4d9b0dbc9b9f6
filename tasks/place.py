"""Step place: choose hosts, accelerators and ports, and claim them in the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from prefect import task

from moorage.adapters.system.process import paused_collector
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.demand import memory_model
from moorage.models.assets import AssetRole
from moorage.placement.on_cluster import propose_on_cluster
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.placement.propose import NoFit, propose
from moorage.placement.request import Subject
from moorage.reports.plan_report import placement_document
from moorage.spec import ModelSpec
from tasks.artifacts import show_markdown
from tasks.context import PLAIN, ledger
from tasks.journal import step
from tasks.survey import take_snapshot

CLAIM_ATTEMPTS = 12
"""Somebody wins each round, so more than deploy at once by default (8) need never give up."""


@task(name="place", task_run_name="place {analyzed.spec.name}", **PLAIN)
async def propose_placement(analyzed: Analyzed, snapshot: FleetSnapshot, running: str) -> Placement:
    """Choose where the model would run. Nothing is claimed."""
    with step("place") as note:
        subject = await in_thread(subject_of, analyzed)
        placement = await propose_or_show(subject, snapshot, running)
        await show_placement(analyzed.spec, placement, summary(placement))
        note.say(summary(placement))
        return placement


@task(name="place", task_run_name="place {analyzed.spec.name}", timeout_seconds=120, **PLAIN)
async def place(
    analyzed: Analyzed, fleet: Fleet, snapshot: FleetSnapshot, release: str, running: str
) -> Placed:
    """Choose where the model runs and claim all of it, or nothing.

    Others may claim after the survey; then the fleet is surveyed again, a few times.

    Returns:
        The model with its place, on the snapshot that the place was chosen on.
    """
    with step("place") as note:
        subject = await in_thread(subject_of, analyzed)
        propose_on = partial(propose_or_show, subject, running=running)
        placed = await propose_and_claim(propose_on, analyzed, fleet, snapshot, release, running)
        text = summary(placed.placement)
        note.say(text)
        await show_placement(placed.spec, placed.placement, f"Placement of {release}: {text}")
        return placed


async def propose_and_claim(
    propose_on: Callable[[FleetSnapshot], Awaitable[Placement]],
    analyzed: Analyzed,
    fleet: Fleet,
    snapshot: FleetSnapshot,
    release: str,
    running: str,
) -> Placed:
    """Propose and claim, on a fresh snapshot whenever others were faster.

    Args:
        propose_on: Proposes on a snapshot.
        analyzed: What is placed.
        fleet: The hosts.
        snapshot: The hosts with all claims when they were surveyed.
        release: The release that claims.
        running: Release that may stop for it; empty = none.

    Raises:
        Failure: `CLAIM_CONFLICT` when others were faster each time; what the proposal raises.
    """
    attempt = 1
    while True:
        placed = analyzed.placed(await propose_on(snapshot), snapshot, release)
        try:
            await in_thread(_claim, placed, running)
        except Failure as failure:
            if failure.cause != Cause.CLAIM_CONFLICT or attempt == CLAIM_ATTEMPTS:
                raise
            attempt, snapshot = attempt + 1, await take_snapshot(fleet)
        else:
            return placed


def _claim(placed: Placed, running: str) -> None:
    """Reserve all seats in the ledger, instead of what the running release holds if it stops."""
    snapshot, stops = placed.snapshot, running if placed.placement.stop_first else ""
    ledger().claims.commit(
        placed.release,
        placed.placement.claims,
        snapshot.without(stops) if stops else snapshot,
        instead_of=stops,
        overcommit=placed.spec.placement.overcommit,
    )


async def propose_or_show(subject: Subject, snapshot: FleetSnapshot, running: str) -> Placement:
    """Place a model on a snapshot; a placement that fits nowhere is shown before it is raised."""
    try:
        return await in_thread(_propose, subject, snapshot, running)
    except NoFit as failure:
        await show_placement(subject.spec, failure.placement, failure.suggestion)
        raise


def _propose(subject: Subject, snapshot: FleetSnapshot, running: str) -> Placement:
    if name := subject.spec.placement.cluster:
        cluster = snapshot.cluster(name)
        return propose_on_cluster(subject.spec, subject.profile, cluster, running)
    with paused_collector():
        return propose(subject, snapshot, ENGINES, running)


async def show_placement(spec: ModelSpec, placement: Placement, description: str) -> None:
    """Show a placement, with the verdict on every host, as an artifact."""
    page = placement_document(spec.name, placement).markdown()
    await show_markdown(f"placement-{spec.slug}", page, description)


def subject_of(analyzed: Analyzed) -> Subject:
    """The model to place, with measurements of its architecture."""
    spec, model, profile = analyzed.spec, analyzed.model, analyzed.profile
    architecture = profile.architectures[0] if profile.architectures else profile.model_type
    return Subject(
        spec=spec,
        profile=profile,
        memory=memory_model(spec, model, profile),
        staged=f"{model.source}@{model.revision}",
        companion_bytes=sum(companion.model.weights.bytes for companion in model.companions),
        adapter_bytes=sum(
            companion.model.weights.bytes
            for companion in model.companions
            if companion.role == AssetRole.ADAPTER
        ),
        measured=ledger().measurements.of(architecture),
    )


def summary(placement: Placement) -> str:
    """A placement in one line."""
    seats = "; ".join(f"{seat.place} ({seat.runtime}), {seat.reason}" for seat in placement.seats)
    stop = " after the running release has stopped" if placement.stop_first else ""
    return f"{placement.engine} on {seats}{stop}"
